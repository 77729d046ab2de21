// aarch64: which CFI rows fit a compact rule, and the code that the toolchain and the kernel make without CFI.
#include <elf.h>

#include <limits>

#include "unwind/cfi/expression.h"
#include "unwind/cfi/machine.h"

namespace cprof::unwind {
namespace {

constexpr uint32_t kFp = 29, kLr = 30, kSp = 31;
constexpr uint64_t kCalleeSaved = 0x7ffull << 19;  // AAPCS64: x19-x29

template <typename T>
bool fits(int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

cp_rule only(cp_cfa_kind kind) {
  cp_rule rule{};
  rule.cfa_kind = kind;
  return rule;
}

bool set_cfa(const FrameState& state, cp_rule& rule) {
  if (state.cfa_kind == FrameState::kRegisterOffset) {
    if (!fits<int32_t>(state.cfa_offset)) return false;
    if (state.cfa_register == kSp || state.cfa_register == kFp) {
      rule.cfa_kind = state.cfa_register == kSp ? CP_CFA_SP : CP_CFA_FP;
      rule.offset = static_cast<int32_t>(state.cfa_offset);
      return true;
    }
    if (state.cfa_register >= CP_MAX_REGISTERS || !fits<int16_t>(state.cfa_offset)) return false;
    rule.cfa_kind = CP_CFA_REG;
    rule.narrow = {static_cast<int16_t>(state.cfa_offset), static_cast<int16_t>(state.cfa_register)};
    return true;
  }
  auto deref = match_deref(state.cfa_expression());
  if (!deref || (deref->number != kSp && deref->number != kFp)) return false;
  if (!fits<int16_t>(deref->first) || !fits<int16_t>(deref->post)) return false;
  rule.cfa_kind = deref->number == kSp ? CP_CFA_DEREF_SP : CP_CFA_DEREF_FP;
  rule.deref = {static_cast<int16_t>(deref->first), static_cast<int16_t>(deref->post)};
  return true;
}

bool set_frame_pointer(const FrameState& state, cp_rule& rule) {
  const RegisterRule& fp = state.registers[kFp];
  switch (fp.kind) {
    case RegisterRule::kUnspecified:
    case RegisterRule::kSameValue: return true;
    case RegisterRule::kUndefined: rule.fp_kind = CP_FP_UNDEFINED; return true;
    case RegisterRule::kOffset:
      if (!fits<int16_t>(fp.value)) return false;
      rule.fp_kind = CP_FP_AT_CFA;
      rule.fp_offset = static_cast<int16_t>(fp.value);
      return true;
    default: return false;
  }
}

// Called after set_frame_pointer: a return address beside the saved x29 needs no room of its own.
bool set_return_address(const FrameState& state, cp_rule& rule) {
  const RegisterRule& lr = state.registers[kLr];
  if (lr.kind == RegisterRule::kUnspecified || lr.kind == RegisterRule::kSameValue) {
    rule.ra_kind = CP_RA_IN_LR;
    return true;
  }
  bool has_plain_cfa = rule.cfa_kind == CP_CFA_SP || rule.cfa_kind == CP_CFA_FP;
  if (lr.kind == RegisterRule::kOffset) {
    if (lr.value == -8) {
      rule.ra_kind = CP_RA_BELOW_CFA;
      return true;
    }
    if (rule.fp_kind == CP_FP_AT_CFA && lr.value == rule.fp_offset + 8) {
      rule.ra_kind = CP_RA_AFTER_FP;
      return true;
    }
    if (rule.fp_kind != CP_FP_AT_CFA && fits<int16_t>(lr.value)) {
      rule.ra_kind = CP_RA_AT_CFA;
      rule.fp_offset = static_cast<int16_t>(lr.value);
      return true;
    }
  } else if (lr.kind != RegisterRule::kRegister) {
    return false;
  }
  if (!has_plain_cfa || !fits<int16_t>(rule.offset) || !fits<int16_t>(lr.value)) return false;
  rule.ra_kind = lr.kind == RegisterRule::kOffset ? CP_RA_AT_SECOND : CP_RA_REGISTER;
  rule.narrow = {static_cast<int16_t>(rule.offset), static_cast<int16_t>(lr.value)};
  return true;
}

bool caller_sp_is_cfa(const FrameState& state) {
  const RegisterRule& sp = state.registers[kSp];
  return sp.kind == RegisterRule::kUnspecified || (sp.kind == RegisterRule::kValOffset && sp.value == 0);
}

// Signed return addresses need no rule of their own: the step strips every return address.
cp_rule classify(const FrameState& state, const Cie& cie) {
  if (cie.return_register != kLr) return only(CP_CFA_BAD);
  if (cie.is_signal_frame) return only(CP_CFA_SIGNAL);
  if (state.registers[kLr].kind == RegisterRule::kUndefined) return only(CP_CFA_STOP);
  if (state.cfa_kind == FrameState::kNoCfa) return only(CP_CFA_BAD);
  cp_rule rule{};
  if (caller_sp_is_cfa(state) && set_cfa(state, rule) && set_frame_pointer(state, rule) &&
      set_return_address(state, rule))
    return rule;
  return only(CP_CFA_COMPLEX);
}

// nop ends in 0xd5, udf #0 in 0x00.
bool is_padding(std::byte last) { return last == std::byte{0xd5} || last == std::byte{0x00}; }

// A stub leaves sp and x30 alone.
constexpr cp_rule kPltRule = {
    .cfa_kind = CP_CFA_SP, .fp_kind = CP_FP_SAME, .ra_kind = CP_RA_IN_LR, .fp_offset = 0, .offset = 0};

std::vector<KnownCode> init_code(uint64_t, std::span<const std::byte>) { return {}; }  // ends up in the FP fallback

// The vdso's __kernel_rt_sigreturn has no CFI since Linux 5.8: mov x8, #139; svc #0.
constexpr std::byte kSigreturn[] = {std::byte{0x68}, std::byte{0x11}, std::byte{0x80}, std::byte{0xd2},
                                    std::byte{0x01}, std::byte{0x00}, std::byte{0x00}, std::byte{0xd4}};
constexpr std::span<const std::byte> kTrampolines[] = {kSigreturn};

}  // namespace

const MachineCfi kAarch64Cfi = {
    .elf_machine = EM_AARCH64,
    .core = &cp_machine_aarch64,
    .callee_saved = kCalleeSaved,
    .classify = classify,
    .is_padding = is_padding,
    .plt_rule = kPltRule,
    .init_code = init_code,
    .sigreturn_code = kTrampolines,
};

}  // namespace cprof::unwind
