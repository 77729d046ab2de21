#include "unwind/cfi/interpreter.h"

#include "unwind/cfi/expression.h"

namespace cprof::unwind {
namespace {

struct Row {
  FrameState state;
  bool is_signal_frame = false;
  uint32_t return_register = 0;
};

CfiStep find_row(const ModuleTable::Impl& module, uint64_t svma, Row& found) {
  const FdeRange* range = module.find_fde(svma);
  if (!range) return CfiStep::kNoCfi;
  const CfiSource& source = module.sources[range->source()];
  CfiSection section(source);
  auto fde = section.fde_at(range->offset());
  if (!fde) return CfiStep::kBroken;
  FrameProgram program(source);
  uint64_t broken_from = 0;
  bool has_row = false;
  program.run(*fde, [&](uint64_t start, uint64_t end, const FrameState& state) {
    if (svma < start || svma >= end) return svma >= end;
    found.state = state;
    has_row = true;
    return false;
  }, broken_from);
  found.is_signal_frame = fde->cie->is_signal_frame;
  found.return_register = fde->cie->return_register;
  return has_row ? CfiStep::kOk : CfiStep::kBroken;
}

CfiStep from_expression(ExpressionOutcome outcome) {
  switch (outcome) {
    case ExpressionOutcome::kOk: return CfiStep::kOk;
    case ExpressionOutcome::kBroken: return CfiStep::kBroken;
    case ExpressionOutcome::kMissingRegister: return CfiStep::kMissingRegister;
    case ExpressionOutcome::kBeyondSnapshot: return CfiStep::kBeyondSnapshot;
    case ExpressionOutcome::kUnreadable: return CfiStep::kUnreadable;
  }
  return CfiStep::kBroken;
}

class Stepper {
 public:
  Stepper(const Row& row, const cp_machine& machine, uint64_t callee_saved, const CfiStepInput& input,
          const RegisterSet& registers, Memory& memory)
      : row_(row), machine_(machine), callee_saved_(callee_saved), input_(input), old_(registers), memory_(memory) {}

  CfiStep run(RegisterSet& result) {
    CfiStep step = find_cfa();
    if (step != CfiStep::kOk) return step;
    uint64_t return_address = 0;
    step = restore(row_.return_register, return_address);
    if (step != CfiStep::kOk) return step;
    uint64_t sp = cfa_;
    if (row_.state.registers[machine_.sp].kind != RegisterRule::kUnspecified) step = restore(machine_.sp, sp);
    if (step != CfiStep::kOk) return step;
    if (!row_.is_signal_frame && (sp < old_sp() || (sp == old_sp() && !input_.is_exact))) return CfiStep::kNoProgress;

    RegisterSet next;
    for (uint32_t n = 0; n < machine_.register_count; n++) {
      uint64_t value = 0;
      // A register that cannot be had is left out: only what a later frame asks for matters.
      if (restore(n, value) == CfiStep::kOk) set(next, n, value);
    }
    set(next, machine_.sp, sp);
    set(next, machine_.pc, pc_from(return_address));
    if (machine_.lr < CP_MAX_REGISTERS && !row_.is_signal_frame) set(next, machine_.lr, next.value[machine_.pc]);
    result = next;
    return CfiStep::kOk;
  }

 private:
  static void set(RegisterSet& registers, uint32_t n, uint64_t value) {
    registers.value[n] = value;
    registers.valid |= uint64_t{1} << n;
  }
  bool is_valid(uint32_t n) const { return n < CP_MAX_REGISTERS && (old_.valid >> n & 1); }
  uint64_t old_sp() const { return old_.value[machine_.sp]; }
  uint64_t pc_from(uint64_t return_address) const { return return_address & machine_.address_mask; }

  CfiStep find_cfa() {
    const FrameState& state = row_.state;
    if (state.cfa_kind == FrameState::kNoCfa) return CfiStep::kBroken;
    if (state.cfa_kind == FrameState::kCfaExpression) {
      ExpressionContext context{old_, memory_, input_.bias, std::nullopt};
      return from_expression(evaluate(state.cfa_expression(), context, cfa_));
    }
    if (!is_valid(state.cfa_register)) return CfiStep::kMissingRegister;
    cfa_ = old_.value[state.cfa_register] + static_cast<uint64_t>(state.cfa_offset);
    return CfiStep::kOk;
  }

  CfiStep read(uint64_t address, uint64_t& value) {
    switch (memory_.read_u64(address, value)) {
      case Memory::Read::kOk: return CfiStep::kOk;
      case Memory::Read::kBeyondSnapshot: return CfiStep::kBeyondSnapshot;
      default: return CfiStep::kUnreadable;
    }
  }

  CfiStep keep(uint32_t n, uint64_t& value) const {
    if (!is_valid(n)) return CfiStep::kMissingRegister;
    value = old_.value[n];
    return CfiStep::kOk;
  }

  CfiStep unspecified(uint32_t n, uint64_t& value) const {
    if (n == row_.return_register) return n == machine_.lr ? keep(n, value) : CfiStep::kBroken;
    return callee_saved_ >> n & 1 ? keep(n, value) : CfiStep::kMissingRegister;
  }

  CfiStep restore(uint32_t n, uint64_t& value) {
    const RegisterRule& rule = row_.state.registers[n];
    uint64_t offset = cfa_ + static_cast<uint64_t>(rule.value);
    switch (rule.kind) {
      case RegisterRule::kUnspecified: return unspecified(n, value);
      case RegisterRule::kUndefined: return n == row_.return_register ? CfiStep::kRoot : CfiStep::kMissingRegister;
      case RegisterRule::kSameValue: return keep(n, value);
      case RegisterRule::kOffset:
        // Popped already (epilogue): the register is live and its slot no longer is.
        if (input_.is_exact && offset < old_sp() && is_valid(n)) return keep(n, value);
        return read(offset, value);
      case RegisterRule::kValOffset: value = offset; return CfiStep::kOk;
      case RegisterRule::kRegister: return keep(static_cast<uint32_t>(rule.value), value);
      default: break;
    }
    ExpressionContext context{old_, memory_, input_.bias, cfa_};
    CfiStep step = from_expression(evaluate(row_.state.expression(rule), context, value));
    if (step != CfiStep::kOk || rule.kind == RegisterRule::kValExpression) return step;
    return read(value, value);
  }

  const Row& row_;
  const cp_machine& machine_;
  uint64_t callee_saved_;
  const CfiStepInput& input_;
  const RegisterSet& old_;
  Memory& memory_;
  uint64_t cfa_ = 0;
};

}  // namespace

CfiStep interpret_step(const ModuleTable::Impl& module, CfiStepInput& input, RegisterSet& registers, Memory& memory) {
  const cp_machine& machine = *module.machine->core;
  uint64_t needed = uint64_t{1} << machine.pc | uint64_t{1} << machine.sp;
  if ((registers.valid & needed) != needed) return CfiStep::kMissingRegister;
  Row row;
  CfiStep step = find_row(module, registers.value[machine.pc] - input.bias - (input.is_exact ? 0 : 1), row);
  if (step != CfiStep::kOk) return step;
  if (row.return_register >= machine.register_count) return CfiStep::kBroken;
  if (row.state.registers[row.return_register].kind == RegisterRule::kUndefined) return CfiStep::kRoot;
  RegisterSet next;
  step = Stepper(row, machine, module.machine->callee_saved, input, registers, memory).run(next);
  if (step != CfiStep::kOk) return step;
  registers = next;
  input.is_exact = row.is_signal_frame;
  return CfiStep::kOk;
}

}  // namespace cprof::unwind
