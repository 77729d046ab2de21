// aarch64: which CFI rows fit a compact rule, and the code that the toolchain and the kernel make without CFI.
#include <elf.h>

#include "unwind/cfi/machine.h"
#include "unwind/cfi/rule_parts.h"

namespace cprof::unwind {
namespace {

constexpr uint32_t kLr = 30;
constexpr uint64_t kCalleeSaved = 0x7ffull << 19;  // AAPCS64: x19-x29

// Called after set_frame_pointer: a return address beside the saved x29 needs no room of its own.
bool set_return_address(const FrameState& state, cp_rule& rule) {
  const RegisterRule& lr = state.registers[kLr];
  if (lr.kind == RegisterRule::kUnspecified || lr.kind == RegisterRule::kSameValue) {
    rule.ra_kind = CP_RA_IN_LR;
    return true;
  }
  if (lr.kind == RegisterRule::kOffset) {
    if (lr.value == -8) {
      rule.ra_kind = CP_RA_BELOW_CFA;
      return true;
    }
    if (rule.fp_kind == CP_FP_AT_CFA && lr.value == rule.fp_offset + 8) {
      rule.ra_kind = CP_RA_AFTER_FP;
      return true;
    }
    bool has_free_offset = rule.fp_kind == CP_FP_SAME || rule.fp_kind == CP_FP_UNDEFINED;
    if (has_free_offset && fits<int16_t>(lr.value)) {
      rule.ra_kind = CP_RA_AT_CFA;
      rule.fp_offset = static_cast<int16_t>(lr.value);
      return true;
    }
  }
  return set_separate_return_address(lr, rule);
}

// Signed return addresses need no rule of their own: the step strips every return address.
cp_rule classify(const FrameState& state, const Cie& cie) {
  if (cie.return_register != kLr) return bare_rule(CP_CFA_BAD);
  if (cie.is_signal_frame) return bare_rule(CP_CFA_SIGNAL);
  if (state.registers[kLr].kind == RegisterRule::kUndefined) return bare_rule(CP_CFA_STOP);
  if (state.cfa_kind == FrameState::kNoCfa) return bare_rule(CP_CFA_BAD);
  cp_rule rule{};
  const cp_machine& machine = cp_machine_aarch64;
  if (caller_sp_is_cfa(state, machine) && set_cfa(state, machine, rule) && set_frame_pointer(state, machine, rule) &&
      set_return_address(state, rule))
    return rule;
  return bare_rule(CP_CFA_COMPLEX);
}

// nop ends in 0xd5, udf #0 in 0x00.
bool is_padding(std::byte last) { return last == std::byte{0xd5} || last == std::byte{0x00}; }

// A stub leaves sp and x30 alone.
constexpr cp_rule kPltRule = {
    .cfa_kind = CP_CFA_SP, .fp_kind = CP_FP_SAME, .is_eh_return = 0, .ra_kind = CP_RA_IN_LR, .fp_offset = 0, .offset = 0};

std::vector<KnownCode> plt_code(uint64_t start, std::span<const std::byte> code) { return {{start, start + code.size(), kPltRule}}; }

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
    .eh_return_register = 0xff,
    .classify = classify,
    .is_padding = is_padding,
    .plt_code = plt_code,
    .init_code = init_code,
    .sigreturn_code = kTrampolines,
};

}  // namespace cprof::unwind
