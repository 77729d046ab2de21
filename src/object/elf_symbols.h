// The functions of one symbol table. Called by ElfFile, for .symtab, .dynsym and the table inside .gnu_debugdata.
// Private to object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::object {

struct SymbolTable {
  std::span<const std::byte> rows, names;
  std::span<const Section> sections;  // of the file, for what a symbol's section is
  uint16_t machine = 0;
};

// Defined functions only. name is for messages. A table whose names overlap without end is an Error.
Result<void> append_functions(const SymbolTable& table, const std::string& name, std::vector<Symbol>* into);

}  // namespace cprof::object
