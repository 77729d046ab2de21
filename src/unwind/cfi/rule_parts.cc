#include "unwind/cfi/rule_parts.h"

#include "unwind/cfi/expression.h"

namespace cprof::unwind {
namespace {

bool set_register_cfa(const FrameState& state, const cp_machine& machine, cp_rule& rule) {
  if (state.cfa_register == machine.sp || state.cfa_register == machine.fp) {
    if (!fits<int32_t>(state.cfa_offset)) return false;
    rule.cfa_kind = state.cfa_register == machine.sp ? CP_CFA_SP : CP_CFA_FP;
    rule.offset = static_cast<int32_t>(state.cfa_offset);
    return true;
  }
  if (state.cfa_register >= CP_MAX_REGISTERS || !fits<int16_t>(state.cfa_offset)) return false;
  rule.cfa_kind = CP_CFA_REG;
  rule.narrow = {static_cast<int16_t>(state.cfa_offset), static_cast<int16_t>(state.cfa_register)};
  return true;
}

}  // namespace

cp_rule bare_rule(cp_cfa_kind kind) {
  cp_rule rule{};
  rule.cfa_kind = kind;
  return rule;
}

bool set_cfa(const FrameState& state, const cp_machine& machine, cp_rule& rule) {
  if (state.cfa_kind == FrameState::kRegisterOffset) return set_register_cfa(state, machine, rule);
  auto deref = match_deref(state.cfa_expression());
  if (!deref || (deref->number != machine.sp && deref->number != machine.fp)) return false;
  if (!fits<int16_t>(deref->first) || !fits<int16_t>(deref->post)) return false;
  rule.cfa_kind = deref->number == machine.sp ? CP_CFA_DEREF_SP : CP_CFA_DEREF_FP;
  rule.deref = {static_cast<int16_t>(deref->first), static_cast<int16_t>(deref->post)};
  return true;
}

bool set_frame_pointer(const FrameState& state, const cp_machine& machine, cp_rule& rule) {
  const RegisterRule& fp = state.registers[machine.fp];
  switch (fp.kind) {
    case RegisterRule::kUnspecified:
    case RegisterRule::kSameValue: return true;
    case RegisterRule::kUndefined: rule.fp_kind = CP_FP_UNDEFINED; return true;
    case RegisterRule::kOffset:
      if (!fits<int16_t>(fp.value)) return false;
      rule.fp_kind = CP_FP_AT_CFA;
      rule.fp_offset = static_cast<int16_t>(fp.value);
      return true;
    case RegisterRule::kExpression: {  // gcc's realigned frames
      auto at = match_register_plus_offset(state.expression(fp));
      if (!at || at->number != machine.fp || !fits<int16_t>(at->offset)) return false;
      rule.fp_kind = CP_FP_AT_FP;
      rule.fp_offset = static_cast<int16_t>(at->offset);
      return true;
    }
    default: return false;
  }
}

bool set_separate_return_address(const RegisterRule& return_address, cp_rule& rule) {
  bool has_plain_cfa = rule.cfa_kind == CP_CFA_SP || rule.cfa_kind == CP_CFA_FP;
  if (!has_plain_cfa || !fits<int16_t>(rule.offset) || !fits<int16_t>(return_address.value)) return false;
  if (return_address.kind != RegisterRule::kOffset && return_address.kind != RegisterRule::kRegister) return false;
  rule.ra_kind = return_address.kind == RegisterRule::kOffset ? CP_RA_AT_SECOND : CP_RA_REGISTER;
  rule.narrow = {static_cast<int16_t>(rule.offset), static_cast<int16_t>(return_address.value)};
  return true;
}

bool caller_sp_is_cfa(const FrameState& state, const cp_machine& machine) {
  const RegisterRule& sp = state.registers[machine.sp];
  return sp.kind == RegisterRule::kUnspecified || (sp.kind == RegisterRule::kValOffset && sp.value == 0);
}

}  // namespace cprof::unwind
