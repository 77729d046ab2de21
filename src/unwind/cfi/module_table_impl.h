// What a ModuleTable holds. Private to unwind/cfi (and the BPF loader, which copies rows into maps).
#pragma once

#include <memory>
#include <vector>

#include "unwind/cfi/module_table.h"
#include "unwind/cfi/table_compiler.h"
#include "unwind/core/unwind_step.h"

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
  // The rule for an exact pc, or for a return address minus one.
  cp_rule rule_at(uint64_t svma) const {
    const cp_rule* known = cp_find_rule_inline(&table, svma);
    if (known && known->cfa_kind == CP_CFA_SIGNAL) return *known;
    // In sigreturn the pc is behind the trampoline's last instruction, where its FDE has ended.
    const cp_rule* before = cp_find_rule_inline(&table, svma - 1);
    if (before && before->cfa_kind == CP_CFA_SIGNAL && !find_fde(svma)) return *before;
    return known ? *known : cp_rule{};
  }
};

// An ELF file's input to the compiler: its text, its CFI, and the code that the linker made.
struct ModuleInput {
  CompileInput compile;
  std::vector<CfiSource> sources;
};
Result<ModuleInput> read_module_input(object::ElfFile& file, object::ElfFile* debug_file);
std::unique_ptr<ModuleTable::Impl> compile_module(ModuleInput input);

}  // namespace cprof::unwind
