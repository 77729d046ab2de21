// One unwinding step by the full CFI: every register, every expression. Exact and slow (about a microsecond); the
// unwinder calls it where compact rows do not suffice, the tests to check rows against it. Reads only the given Memory.
#pragma once

#include <cstdint>

#include "unwind/cfi/module_table_impl.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::unwind {

enum class CfiStep : uint8_t {
  kOk,
  kRoot,              // return address undefined
  kNoCfi,
  kBroken,
  kMissingRegister,   // a needed register is not among the valid ones
  kNoProgress,
  kBeyondSnapshot,
  kUnreadable
};

struct CfiStepInput {
  uint64_t bias = 0;
  bool is_exact = false;   // the pc is an interrupted instruction, not a return address
};

// Turns registers into the caller's; is_exact becomes true behind a signal frame. Unchanged unless kOk.
CfiStep interpret_step(const ModuleTable::Impl& module, CfiStepInput& input, RegisterSet& registers, Memory& memory);

}  // namespace cprof::unwind
