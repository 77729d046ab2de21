#include "collect/bpf/sampler_bytes.h"

asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".globl cprof_sampler_object, cprof_sampler_object_end\n"
    "cprof_sampler_object:\n"
    ".incbin \"" CPROF_SAMPLER_OBJECT "\"\n"
    "cprof_sampler_object_end:\n"
    ".popsection\n");

extern "C" const std::byte cprof_sampler_object[], cprof_sampler_object_end[];

namespace cprof::collect {

std::span<const std::byte> sampler_object_bytes() { return {cprof_sampler_object, cprof_sampler_object_end}; }

}  // namespace cprof::collect
