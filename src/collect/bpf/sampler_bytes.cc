#include "collect/bpf/sampler_bytes.h"

#define CPROF_TAKE_IN(name, path) \
  asm(".pushsection .rodata\n"    \
      ".balign 16\n"              \
      ".globl " name ", " name "_end\n" name ":\n" \
      ".incbin \"" path "\"\n" name "_end:\n"    \
      ".popsection\n")

CPROF_TAKE_IN("cprof_sampler_object", CPROF_SAMPLER_OBJECT);
CPROF_TAKE_IN("cprof_sampler_object_5_10", CPROF_SAMPLER_OBJECT_5_10);

extern "C" const std::byte cprof_sampler_object[], cprof_sampler_object_end[];
extern "C" const std::byte cprof_sampler_object_5_10[], cprof_sampler_object_5_10_end[];

namespace cprof::collect {

std::span<const std::byte> sampler_object_bytes(SamplerVariant variant) {
  if (variant == SamplerVariant::kFull) return {cprof_sampler_object, cprof_sampler_object_end};
  return {cprof_sampler_object_5_10, cprof_sampler_object_5_10_end};
}

}  // namespace cprof::collect
