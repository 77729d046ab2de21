#include "collect/bpf/cpustat_bytes.h"

asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".globl cprof_cpustat_object, cprof_cpustat_object_end\n"
    "cprof_cpustat_object:\n"
    ".incbin \"" CPROF_CPUSTAT_OBJECT "\"\n"
    "cprof_cpustat_object_end:\n"
    ".popsection\n");

extern "C" const std::byte cprof_cpustat_object[], cprof_cpustat_object_end[];

namespace cprof::collect {

std::span<const std::byte> cpustat_object_bytes() { return {cprof_cpustat_object, cprof_cpustat_object_end}; }

}  // namespace cprof::collect
