// The compiled BPF object inside this program. Used by SamplerObject.
#pragma once

#include <cstddef>
#include <span>

namespace cprof::collect {

std::span<const std::byte> sampler_object_bytes();

}  // namespace cprof::collect
