// DWARF expressions in CFI: a bounded evaluator (DWARF 5 section 2.5) and recognisers of the few shapes that compilers
// and linkers really write, which compact rows can hold. Callers: the interpreter; the per-machine classifiers.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/cfi/frame_program.h"
#include "unwind/cfi/unwinder.h"

namespace cprof::unwind {

enum class ExpressionOutcome : uint8_t {
  kOk,
  kBroken,            // malformed, an operation that CFI may not use, or over a limit
  kMissingRegister,
  kBeyondSnapshot,
  kUnreadable
};

struct ExpressionContext {
  const RegisterSet& registers;
  Memory& memory;
  uint64_t bias = 0;                       // added to DW_OP_addr
  std::optional<uint64_t> cfa;             // pushed first for register rules; DW_OP_call_frame_cfa
};

inline constexpr size_t kExpressionStackLimit = 64;
inline constexpr size_t kExpressionStepLimit = 1000;

ExpressionOutcome evaluate(ExpressionBytes expression, const ExpressionContext& context, uint64_t& result);

// breg(n) + offset and nothing else.
struct RegisterPlusOffset {
  uint32_t number = 0;
  int64_t offset = 0;
};
std::optional<RegisterPlusOffset> match_register_plus_offset(ExpressionBytes expression);

// *(breg(n) + first) [+ post].
struct DerefExpression {
  uint32_t number = 0;
  int64_t first = 0, post = 0;
};
std::optional<DerefExpression> match_deref(ExpressionBytes expression);

// The linker's .plt on x86-64: rsp + 8 + ((rip & 15) >= n) * 8. Gives n.
std::optional<unsigned> match_plt(ExpressionBytes expression);

}  // namespace cprof::unwind
