// How deep the frames of a stripped Go program are, from the table that its own stack traces go by: it has no CFI then,
// and its leaf functions no frame pointer. Called when a module's input is read.
#pragma once

#include <vector>

#include "object/elf_file.h"
#include "unwind/cfi/machine.h"

namespace cprof::unwind {

// Ascending and disjoint; empty: no Go program, a broken table (its functions count as code without CFI), or not of
// x86-64. Functions that go to another stack are left out: the frame pointer leads from there.
std::vector<KnownCode> go_code(object::ElfFile& file);

}  // namespace cprof::unwind
