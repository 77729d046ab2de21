// The compiled BPF objects inside this program. Used by SamplerObject, CpustatObject and UprobeObject.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cprof::collect {

// The same sampler for what kernels can: kFull needs Linux 5.17, kFor510 runs on 5.10 and everything later, a little slower
// and without mappings that the programs find by themselves.
enum class SamplerVariant : uint8_t { kFull, kFor510 };

std::span<const std::byte> sampler_object_bytes(SamplerVariant variant);
std::span<const std::byte> cpustat_object_bytes();
// with_stacks: the one that walks the stacks of calls, too; needs Linux 5.17.
std::span<const std::byte> uprobe_object_bytes(bool with_stacks);

}  // namespace cprof::collect
