// x86-64: which CFI rows fit a compact rule, and the code that the toolchain makes without CFI.
#include <elf.h>

#include <cstring>

#include "unwind/cfi/expression.h"
#include "unwind/cfi/machine.h"
#include "unwind/cfi/rule_parts.h"

namespace cprof::unwind {
namespace {

constexpr uint32_t kRcx = 2, kRbx = 3, kRbp = 6, kRsp = 7, kRip = 16;
constexpr uint64_t kCalleeSaved = 1u << kRbx | 1u << kRbp | 0xfu << 12;  // psABI: and r12-r15

bool is_register_in_sigcontext(const FrameState& state, uint32_t number) {
  const RegisterRule& rule = state.registers[number];
  if (rule.kind != RegisterRule::kExpression) return false;
  auto found = match_register_plus_offset(state.expression(rule));
  return found && found->number == kRsp && found->offset == cp_machine_x86_64.sigcontext[number];
}

// glibc's __restore_rt describes the kernel's signal frame by one expression per register.
bool is_signal_frame(const FrameState& state) {
  if (state.cfa_kind != FrameState::kCfaExpression) return false;
  auto cfa = match_deref(state.cfa_expression());
  return cfa && cfa->number == kRsp && cfa->first == cp_machine_x86_64.sigcontext[kRsp] && cfa->post == 0 &&
         is_register_in_sigcontext(state, kRip) && is_register_in_sigcontext(state, kRbp);
}

bool set_plt_cfa(const FrameState& state, cp_rule& rule) {
  if (state.cfa_kind != FrameState::kCfaExpression) return false;
  auto n = match_plt(state.cfa_expression());
  if (!n) return false;
  rule.cfa_kind = CP_CFA_PLT;
  rule.offset = static_cast<int32_t>(*n);
  return true;
}

bool set_return_address(const FrameState& state, cp_rule& rule) {
  const RegisterRule& ra = state.registers[kRip];
  if (ra.kind == RegisterRule::kOffset && ra.value == -8) return true;
  return set_separate_return_address(ra, rule);
}

cp_rule classify(const FrameState& state, const Cie& cie) {
  if (cie.return_register != kRip) return bare_rule(CP_CFA_BAD);
  if (state.registers[kRip].kind == RegisterRule::kUndefined) return bare_rule(CP_CFA_STOP);
  if (state.cfa_kind == FrameState::kNoCfa || state.registers[kRip].kind == RegisterRule::kUnspecified)
    return bare_rule(CP_CFA_BAD);
  if (cie.is_signal_frame && is_signal_frame(state)) return bare_rule(CP_CFA_SIGNAL);
  cp_rule rule{};
  const cp_machine& machine = cp_machine_x86_64;
  if (caller_sp_is_cfa(state, machine) && (set_plt_cfa(state, rule) || set_cfa(state, machine, rule)) &&
      set_return_address(state, rule) && set_frame_pointer(state, machine, rule))
    return rule;
  return bare_rule(CP_CFA_COMPLEX);
}

// Assemblers end padding with nop (0x90), int3, or a long nop whose displacement is zero.
bool is_padding(std::byte last) {
  return last == std::byte{0x90} || last == std::byte{0xcc} || last == std::byte{0x00};
}

cp_rule pushed(int32_t bytes) {
  cp_rule rule = bare_rule(CP_CFA_SP);
  rule.offset = 8 + bytes;
  return rule;
}

// What linkers write into call stubs. Only pushes move the stack, and a jump leaves it to the next stub as it was.
struct StubInstruction {
  enum Effect : uint8_t { kNone, kPush, kJump };
  uint8_t opcode[4];
  uint8_t opcode_bytes, bytes;
  Effect effect;
};
constexpr StubInstruction kStubInstructions[] = {
    {{0xf3, 0x0f, 0x1e, 0xfa}, 4, 4, StubInstruction::kNone},  // endbr64
    {{0xff, 0x25}, 2, 6, StubInstruction::kJump},              // jmp *x(%rip)
    {{0xf2, 0xff, 0x25}, 3, 7, StubInstruction::kJump},        // bnd jmp *x(%rip)
    {{0xe9}, 1, 5, StubInstruction::kJump},
    {{0xf2, 0xe9}, 2, 6, StubInstruction::kJump},
    {{0x68}, 1, 5, StubInstruction::kPush},                    // push $n
    {{0xff, 0x35}, 2, 6, StubInstruction::kPush},              // push x(%rip)
    {{0x41, 0x53}, 2, 2, StubInstruction::kPush},              // push %r11: mold
    {{0x41, 0xbb}, 2, 6, StubInstruction::kNone},              // mov $n,%r11d: mold
    {{0x4c, 0x8b, 0x1d}, 3, 7, StubInstruction::kNone},        // mov x(%rip),%r11: lld without indirect jumps
    {{0x4c, 0x8d, 0x1d}, 3, 7, StubInstruction::kNone},        // lea x(%rip),%r11
    {{0xcc}, 1, 1, StubInstruction::kNone},
    {{0x90}, 1, 1, StubInstruction::kNone},
    {{0x66, 0x90}, 2, 2, StubInstruction::kNone},
    {{0x0f, 0x1f, 0x00}, 3, 3, StubInstruction::kNone},
    {{0x0f, 0x1f, 0x40}, 3, 4, StubInstruction::kNone},
    {{0x0f, 0x1f, 0x44, 0x00}, 4, 5, StubInstruction::kNone},
    {{0x66, 0x0f, 0x1f, 0x44}, 4, 6, StubInstruction::kNone},
    {{0x0f, 0x1f, 0x80}, 3, 7, StubInstruction::kNone},
    {{0x0f, 0x1f, 0x84}, 3, 8, StubInstruction::kNone},
    {{0x66, 0x0f, 0x1f, 0x84}, 4, 9, StubInstruction::kNone},
};

const StubInstruction* stub_instruction(std::span<const std::byte> code) {
  for (const StubInstruction& one : kStubInstructions)
    if (one.bytes <= code.size() && memcmp(code.data(), one.opcode, one.opcode_bytes) == 0) return &one;
  return nullptr;
}

// Behind an instruction that is not known nothing is said to be pushed.
std::vector<KnownCode> plt_code(uint64_t start, std::span<const std::byte> code) {
  std::vector<KnownCode> pieces;
  size_t from = 0, at = 0;
  int32_t bytes_pushed = 0;
  auto end_piece = [&](int32_t next) {
    if (next == bytes_pushed) return;
    if (at > from) pieces.push_back({start + from, start + at, pushed(bytes_pushed)});
    from = at;
    bytes_pushed = next;
  };
  while (at < code.size()) {
    const StubInstruction* one = stub_instruction(code.subspan(at));
    if (!one) end_piece(0);
    at += one ? one->bytes : code.size() - at;
    if (one && one->effect != StubInstruction::kNone) end_piece(one->effect == StubInstruction::kPush ? bytes_pushed + 8 : 0);
  }
  if (at > from) pieces.push_back({start + from, start + at, pushed(bytes_pushed)});
  return pieces;
}

// crti.o and crtn.o make _init and _fini of: [endbr64] sub $8,%rsp ... add $8,%rsp ret.
std::vector<KnownCode> init_code(uint64_t start, std::span<const std::byte> code) {
  constexpr uint8_t kEndbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, kSub[] = {0x48, 0x83, 0xec, 0x08};
  constexpr uint8_t kAddRet[] = {0x48, 0x83, 0xc4, 0x08, 0xc3};
  auto is_at = [&](size_t at, std::span<const uint8_t> bytes) {
    return at + bytes.size() <= code.size() && memcmp(code.data() + at, bytes.data(), bytes.size()) == 0;
  };
  size_t body = is_at(0, kEndbr) ? sizeof(kEndbr) : 0;
  if (!is_at(body, kSub) || code.size() < sizeof(kAddRet)) return {};
  body += sizeof(kSub);
  size_t ret = code.size() - 1;
  if (ret < body + sizeof(kAddRet) - 1 || !is_at(code.size() - sizeof(kAddRet), kAddRet)) return {};
  return {{start, start + body, pushed(0)}, {start + body, start + ret, pushed(8)}, {start + ret, start + ret + 1, pushed(0)}};
}

// musl's __restore_rt: mov $15,%rax; syscall, in either width.
constexpr std::byte kSigreturn64[] = {std::byte{0x48}, std::byte{0xc7}, std::byte{0xc0}, std::byte{0x0f}, std::byte{0x00},
                                      std::byte{0x00}, std::byte{0x00}, std::byte{0x0f}, std::byte{0x05}};
constexpr std::byte kSigreturn32[] = {std::byte{0xb8}, std::byte{0x0f}, std::byte{0x00}, std::byte{0x00},
                                      std::byte{0x00}, std::byte{0x0f}, std::byte{0x05}};
constexpr std::span<const std::byte> kTrampolines[] = {kSigreturn64, kSigreturn32};

}  // namespace

const MachineCfi kX86_64Cfi = {
    .elf_machine = EM_X86_64,
    .core = &cp_machine_x86_64,
    .callee_saved = kCalleeSaved,
    .eh_return_register = kRcx,
    .classify = classify,
    .is_padding = is_padding,
    .plt_code = plt_code,
    .init_code = init_code,
    .sigreturn_code = kTrampolines,
};

}  // namespace cprof::unwind
