// The compiled BPF object of uprobe inside this program. Used by UprobeObject.
#pragma once

#include <cstddef>
#include <span>

namespace cprof::collect {

std::span<const std::byte> uprobe_object_bytes();

}  // namespace cprof::collect
