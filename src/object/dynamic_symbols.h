// The dynamic symbol table as the loader finds it, through PT_DYNAMIC: for files whose section headers were cut off. Called
// by ElfFile only. Private to object.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::object {

struct DynamicSymbols {
  std::vector<std::byte> rows, names;
};

// Nothing: the file has no dynamic segment or no symbols in it. An Error when what the segment says cannot be.
Result<std::optional<DynamicSymbols>> read_dynamic_symbols(ElfFile& file, std::span<const Elf64_Phdr> program_headers);

}  // namespace cprof::object
