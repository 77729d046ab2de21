// The compiled BPF object of cpustat inside this program. Used by CpustatObject.
#pragma once

#include <cstddef>
#include <span>

namespace cprof::collect {

std::span<const std::byte> cpustat_object_bytes();

}  // namespace cprof::collect
