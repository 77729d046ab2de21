#include "collect/bpf/uprobe_bytes.h"

asm(".pushsection .rodata\n"
    ".balign 16\n"
    ".globl cprof_uprobe_object, cprof_uprobe_object_end\n"
    "cprof_uprobe_object:\n"
    ".incbin \"" CPROF_UPROBE_OBJECT "\"\n"
    "cprof_uprobe_object_end:\n"
    ".popsection\n");

extern "C" const std::byte cprof_uprobe_object[], cprof_uprobe_object_end[];

namespace cprof::collect {

std::span<const std::byte> uprobe_object_bytes() { return {cprof_uprobe_object, cprof_uprobe_object_end}; }

}  // namespace cprof::collect
