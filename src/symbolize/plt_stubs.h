// The stubs through which a file calls other files' functions. They have no symbols: each jumps through a slot of the
// global offset table, and the slot's relocation names the callee. Called by SymbolIndex.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "object/elf_file.h"

namespace cprof::symbolize {

struct PltStub {
  uint64_t address = 0, size = 0;
  std::string_view callee;  // valid while the ElfFile keeps its string table
};

// x86-64 and aarch64. Nothing for what is broken or absent.
std::vector<PltStub> find_plt_stubs(object::ElfFile& file);

}  // namespace cprof::symbolize
