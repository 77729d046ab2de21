// What a ModuleTable holds. Private to unwind/cfi (and the BPF loader, which copies rows into maps).
#pragma once

#include <memory>
#include <vector>

#include "unwind/cfi/module_table.h"
#include "unwind/cfi/table_compiler.h"

namespace cprof::unwind {

struct ModuleTable::Impl {
  const MachineCfi* machine = nullptr;
  RowSet rows;
  std::vector<FdeRange> fdes;
  std::vector<CfiSource> sources;   // for the interpreter
  CompileStats stats;

  // rows as unwind/core takes them; valid while this lives and is not changed.
  cp_table table{};
  void bind();                      // sets table from rows; once, when all is in place

  const FdeRange* find_fde(uint64_t svma) const;
};

// An ELF file's input to the compiler: its text, its CFI, and the code that the linker made.
struct ModuleInput {
  CompileInput compile;
  std::vector<CfiSource> sources;
};
Result<ModuleInput> read_module_input(object::ElfFile& file, object::ElfFile* debug_file);
std::unique_ptr<ModuleTable::Impl> compile_module(ModuleInput input);

}  // namespace cprof::unwind
