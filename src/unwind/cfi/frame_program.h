// Runs the DW_CFA_* instructions of one FDE and gives its rows: for each pc range, how to find the CFA and every
// register of the caller. Callers: the table compiler (every row), the interpreter (the row of one pc). Pure over bytes,
// bounded: one pass over the instructions, a limited state stack. Source: DWARF 5 section 6.4.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "unwind/cfi/cfi_section.h"
#include "unwind/core/unwind_rows.h"

namespace cprof::unwind {

using ExpressionBytes = std::span<const std::byte>;

struct RegisterRule {
  enum Kind : uint8_t {
    kUnspecified,     // the CFI says nothing: kept if callee-saved
    kUndefined,
    kSameValue,
    kOffset,          // at CFA + value
    kValOffset,       // is CFA + value
    kRegister,        // in register `value`
    kExpression,      // at the address the expression gives
    kValExpression    // is what the expression gives
  };
  int64_t value = 0;            // offset or register; of an expression its position in the section
  uint32_t expression_size = 0;
  Kind kind = kUnspecified;
  bool is_expression() const { return kind == kExpression || kind == kValExpression; }
};

struct FrameState {
  enum CfaKind : uint8_t { kNoCfa, kRegisterOffset, kCfaExpression };
  CfaKind cfa_kind = kNoCfa;
  uint32_t cfa_register = 0;
  int64_t cfa_offset = 0;       // of an expression its position in the section
  uint32_t cfa_expression_size = 0;
  bool return_address_is_signed = false;          // DW_CFA_AARCH64_negate_ra_state
  const CfiSource* source = nullptr;              // where expressions lie
  std::array<RegisterRule, CP_MAX_REGISTERS> registers{};

  ExpressionBytes cfa_expression() const { return bytes(cfa_offset, cfa_expression_size); }
  ExpressionBytes expression(const RegisterRule& rule) const { return bytes(rule.value, rule.expression_size); }

 private:
  ExpressionBytes bytes(int64_t position, uint32_t size) const {
    return std::span(source->bytes).subspan(static_cast<size_t>(position), size);
  }
};

// One program per section: it keeps each CIE's initial state, which would else be computed anew for every FDE.
class FrameProgram {
 public:
  explicit FrameProgram(const CfiSource& source) : source_(source) {}

  // row(start, end, state): in pc order, without gaps, from fde.start to fde.end; return false to stop.
  // False: the instructions are broken; the rows so far are right, from `broken_from` on nothing is known.
  template <typename Row>
  bool run(const Fde& fde, Row&& row, uint64_t& broken_from);

  static constexpr size_t kStateStackLimit = 64;

 private:
  enum class Step : uint8_t { kState, kAdvance, kBroken };
  struct Position {
    uint64_t pc = 0;
    uint64_t next_pc = 0;  // set by an advance
  };
  const FrameState* initial_state(const Cie& cie);
  void begin(const Fde& fde, const FrameState& initial);
  Step next(ByteReader& reader, const Cie& cie, Position& position);
  Step extended(uint8_t opcode, ByteReader& reader, const Cie& cie, Position& position);
  Step advance(Position& position, uint64_t delta, const Cie& cie) const;
  Step set(uint64_t number, RegisterRule::Kind kind, int64_t value);
  Step set_expression(ByteReader& reader, RegisterRule::Kind kind);
  Step restore(uint64_t number);
  Step define_cfa(uint64_t number, int64_t offset);
  Step change_cfa_offset(int64_t offset);
  Step remember();
  Step recall();
  int64_t position_of(const ByteReader& reader) const { return reader_base_ + static_cast<int64_t>(reader.position()); }

  const CfiSource& source_;
  std::unordered_map<const Cie*, FrameState> initial_;
  FrameState state_;
  const FrameState* restore_from_ = nullptr;
  std::vector<FrameState> stack_;
  int64_t reader_base_ = 0;     // of the running instructions in the section
};

template <typename Row>
bool FrameProgram::run(const Fde& fde, Row&& row, uint64_t& broken_from) {
  broken_from = fde.start;
  const FrameState* initial = initial_state(*fde.cie);
  if (!initial) return false;
  begin(fde, *initial);
  ByteReader reader(fde.instructions);
  Position position{fde.start, fde.start};
  while (!reader.at_end()) {
    Step step = next(reader, *fde.cie, position);
    if (step == Step::kBroken || !reader.ok()) {
      broken_from = position.pc;
      return false;
    }
    if (step == Step::kState) continue;
    if (position.next_pc >= fde.end) break;  // rows behind the function's end say nothing
    if (position.next_pc > position.pc && !row(position.pc, position.next_pc, state_)) return true;
    position.pc = position.next_pc;
  }
  row(position.pc, fde.end, state_);
  return true;
}

}  // namespace cprof::unwind
