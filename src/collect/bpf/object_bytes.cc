#include "collect/bpf/object_bytes.h"

// Puts a file into the program and names where it begins and ends.
#define CPROF_TAKE_IN(name, path)                                \
  asm(".pushsection .rodata\n"                                   \
      ".balign 16\n"                                             \
      ".globl " #name ", " #name "_end\n" #name ":\n"            \
      ".incbin \"" path "\"\n" #name "_end:\n"                   \
      ".popsection\n");                                          \
  extern "C" const std::byte name[], name##_end[]

CPROF_TAKE_IN(cprof_sampler_object, CPROF_SAMPLER_OBJECT);
CPROF_TAKE_IN(cprof_sampler_object_5_10, CPROF_SAMPLER_OBJECT_5_10);
CPROF_TAKE_IN(cprof_cpustat_object, CPROF_CPUSTAT_OBJECT);
CPROF_TAKE_IN(cprof_uprobe_object, CPROF_UPROBE_OBJECT);
CPROF_TAKE_IN(cprof_uprobe_object_stacks, CPROF_UPROBE_OBJECT_STACKS);

namespace cprof::collect {

std::span<const std::byte> sampler_object_bytes(SamplerVariant variant) {
  if (variant == SamplerVariant::kFull) return {cprof_sampler_object, cprof_sampler_object_end};
  return {cprof_sampler_object_5_10, cprof_sampler_object_5_10_end};
}

std::span<const std::byte> cpustat_object_bytes() { return {cprof_cpustat_object, cprof_cpustat_object_end}; }

std::span<const std::byte> uprobe_object_bytes(bool with_stacks) {
  if (with_stacks) return {cprof_uprobe_object_stacks, cprof_uprobe_object_stacks_end};
  return {cprof_uprobe_object, cprof_uprobe_object_end};
}

}  // namespace cprof::collect
