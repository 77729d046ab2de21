#include "unwind/cfi/frame_program.h"

namespace cprof::unwind {
namespace {

// DW_CFA_*: the three opcodes with their operand in the low six bits, then the extended ones.
enum : uint8_t {
  kAdvanceLoc = 0x40, kOffsetLow = 0x80, kRestoreLow = 0xc0,
  kNop = 0x00, kSetLoc, kAdvanceLoc1, kAdvanceLoc2, kAdvanceLoc4, kOffsetExtended, kRestoreExtended, kUndefinedRegister,
  kSameValueRegister, kInRegister, kRememberState, kRestoreState, kDefCfa, kDefCfaRegister, kDefCfaOffset,
  kDefCfaExpression, kExpressionAt, kOffsetExtendedSf, kDefCfaSf, kDefCfaOffsetSf, kValOffsetOf, kValOffsetSf,
  kValExpressionOf,
  kMipsAdvanceLoc8 = 0x1d, kNegateRaState = 0x2d, kGnuArgsSize = 0x2e, kGnuNegativeOffsetExtended = 0x2f
};

// Factored offsets are arithmetic modulo 2^64, as hostile factors may overflow.
int64_t factored(uint64_t value, int64_t factor) { return static_cast<int64_t>(value * static_cast<uint64_t>(factor)); }

}  // namespace

const FrameState* FrameProgram::initial_state(const Cie& cie) {
  auto [it, is_new] = initial_.try_emplace(&cie);
  if (!is_new) return it->second.source ? &it->second : nullptr;
  state_ = FrameState{};
  state_.source = &source_;
  restore_from_ = nullptr;
  stack_.clear();
  ByteReader reader(cie.instructions);
  reader_base_ = cie.instructions.empty() ? 0 : cie.instructions.data() - source_.bytes.data();
  Position position;
  while (!reader.at_end())
    if (next(reader, cie, position) != Step::kState || !reader.ok()) return nullptr;
  it->second = state_;
  return &it->second;
}

void FrameProgram::begin(const Fde& fde, const FrameState& initial) {
  state_ = initial;
  restore_from_ = &initial;
  stack_.clear();
  reader_base_ = fde.instructions.empty() ? 0 : fde.instructions.data() - source_.bytes.data();
}

FrameProgram::Step FrameProgram::next(ByteReader& reader, const Cie& cie, Position& position) {
  uint8_t byte = reader.u8();
  uint8_t operand = byte & 0x3f;
  switch (byte & 0xc0) {
    case kAdvanceLoc: return advance(position, operand, cie);
    case kOffsetLow: return set(operand, RegisterRule::kOffset, factored(reader.uleb(), cie.data_align));
    case kRestoreLow: return restore(operand);
    default: return extended(byte, reader, cie, position);
  }
}

// One row per opcode: this is the instruction set's table, longer than a function otherwise may be.
FrameProgram::Step FrameProgram::extended(uint8_t opcode, ByteReader& reader, const Cie& cie, Position& position) {
  using Rule = RegisterRule;
  auto unsigned_offset = [&] { return factored(reader.uleb(), cie.data_align); };
  auto signed_offset = [&] { return factored(static_cast<uint64_t>(reader.sleb()), cie.data_align); };
  uint64_t number = 0;
  auto read_number = [&] { return number = reader.uleb(); };
  switch (opcode) {
    case kNop: return Step::kState;
    case kSetLoc: {
      auto pc = CfiSection::read_pointer(reader, source_, source_.is_eh_frame ? cie.fde_encoding : 0, cie.address_size);
      if (!pc || *pc < position.pc) return Step::kBroken;
      position.next_pc = *pc;
      return Step::kAdvance;
    }
    case kAdvanceLoc1: return advance(position, reader.u8(), cie);
    case kAdvanceLoc2: return advance(position, reader.u16(), cie);
    case kAdvanceLoc4: return advance(position, reader.u32(), cie);
    case kMipsAdvanceLoc8: return advance(position, reader.u64(), cie);
    case kOffsetExtended: return read_number(), set(number, Rule::kOffset, unsigned_offset());
    case kOffsetExtendedSf: return read_number(), set(number, Rule::kOffset, signed_offset());
    case kGnuNegativeOffsetExtended:
      return read_number(), set(number, Rule::kOffset, factored(0 - reader.uleb(), cie.data_align));
    case kValOffsetOf: return read_number(), set(number, Rule::kValOffset, unsigned_offset());
    case kValOffsetSf: return read_number(), set(number, Rule::kValOffset, signed_offset());
    case kRestoreExtended: return restore(reader.uleb());
    case kUndefinedRegister: return set(reader.uleb(), Rule::kUndefined, 0);
    case kSameValueRegister: return set(reader.uleb(), Rule::kSameValue, 0);
    case kInRegister: return read_number(), set(number, Rule::kRegister, static_cast<int64_t>(reader.uleb()));
    case kExpressionAt: return set_expression(reader, Rule::kExpression);
    case kValExpressionOf: return set_expression(reader, Rule::kValExpression);
    case kRememberState: return remember();
    case kRestoreState: return recall();
    case kDefCfa: return read_number(), define_cfa(number, static_cast<int64_t>(reader.uleb()));
    case kDefCfaSf: return read_number(), define_cfa(number, signed_offset());
    case kDefCfaRegister:
      if (state_.cfa_kind == FrameState::kCfaExpression) return Step::kBroken;
      return define_cfa(reader.uleb(), state_.cfa_offset);
    case kDefCfaOffset: return change_cfa_offset(static_cast<int64_t>(reader.uleb()));
    case kDefCfaOffsetSf: return change_cfa_offset(signed_offset());
    case kDefCfaExpression: {
      uint64_t size = reader.uleb();
      state_.cfa_kind = FrameState::kCfaExpression;
      state_.cfa_offset = position_of(reader);
      state_.cfa_expression_size = static_cast<uint32_t>(reader.bytes(size).size());
      return Step::kState;
    }
    case kNegateRaState: state_.return_address_is_signed = !state_.return_address_is_signed; return Step::kState;
    case kGnuArgsSize: reader.uleb(); return Step::kState;  // matters only to landing pads
    default: return Step::kBroken;
  }
}

FrameProgram::Step FrameProgram::advance(Position& position, uint64_t delta, const Cie& cie) const {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(delta, cie.code_align, &bytes)) return Step::kBroken;
  if (__builtin_add_overflow(position.pc, bytes, &position.next_pc)) return Step::kBroken;
  return Step::kAdvance;
}

// Registers beyond the general ones (vector registers, RA_SIGN_STATE) are read over: unwinding needs none of them.
FrameProgram::Step FrameProgram::set(uint64_t number, RegisterRule::Kind kind, int64_t value) {
  if (number < state_.registers.size()) state_.registers[number] = {value, 0, kind};
  return Step::kState;
}

FrameProgram::Step FrameProgram::set_expression(ByteReader& reader, RegisterRule::Kind kind) {
  uint64_t number = reader.uleb();
  uint64_t size = reader.uleb();
  int64_t position = position_of(reader);
  auto bytes = reader.bytes(size);
  if (number < state_.registers.size())
    state_.registers[number] = {position, static_cast<uint32_t>(bytes.size()), kind};
  return Step::kState;
}

FrameProgram::Step FrameProgram::restore(uint64_t number) {
  if (!restore_from_) return Step::kBroken;  // a CIE has nothing to restore from
  if (number < state_.registers.size()) state_.registers[number] = restore_from_->registers[number];
  return Step::kState;
}

FrameProgram::Step FrameProgram::define_cfa(uint64_t number, int64_t offset) {
  state_.cfa_kind = FrameState::kRegisterOffset;
  state_.cfa_register = number < state_.registers.size() ? static_cast<uint32_t>(number) : CP_MAX_REGISTERS;
  state_.cfa_offset = offset;
  state_.cfa_expression_size = 0;
  return Step::kState;
}

FrameProgram::Step FrameProgram::change_cfa_offset(int64_t offset) {
  if (state_.cfa_kind != FrameState::kRegisterOffset) return Step::kBroken;
  state_.cfa_offset = offset;
  return Step::kState;
}

FrameProgram::Step FrameProgram::remember() {
  if (stack_.size() >= kStateStackLimit) return Step::kBroken;
  stack_.push_back(state_);
  return Step::kState;
}

FrameProgram::Step FrameProgram::recall() {
  if (stack_.empty()) return Step::kBroken;
  state_ = stack_.back();
  stack_.pop_back();
  return Step::kState;
}

}  // namespace cprof::unwind
