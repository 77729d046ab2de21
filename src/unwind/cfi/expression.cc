// A DWARF expression is a program for a small stack machine. Input is hostile, so the stack holds at most
// kExpressionStackLimit words, at most kExpressionStepLimit operations run (DW_OP_bra can loop), and each operation says
// what it needs through pop(), which turns an underflow into kBroken.
#include "unwind/cfi/expression.h"

#include <array>

namespace cprof::unwind {
namespace {

enum Op : uint8_t {
  kAddr = 0x03, kDeref = 0x06, kConst1u = 0x08, kConst1s, kConst2u, kConst2s, kConst4u, kConst4s, kConst8u, kConst8s,
  kConstu, kConsts, kDup, kDrop, kOver, kPick, kSwap, kRot, kXderef, kAbs, kAnd, kDiv, kMinus, kMod, kMul, kNeg, kNot,
  kOr, kPlus, kPlusUconst, kShl, kShr, kShra, kXor, kBra, kEq, kGe, kGt, kLe, kLt, kNe, kSkip, kLit0 = 0x30,
  kReg0 = 0x50, kBreg0 = 0x70, kRegx = 0x90, kFbreg, kBregx, kDerefSize = 0x94, kNopOp = 0x96, kCallFrameCfa = 0x9c
};

class Evaluator {
 public:
  Evaluator(ExpressionBytes expression, const ExpressionContext& context) : reader_(expression), context_(context) {}

  ExpressionOutcome run(uint64_t& result) {
    if (context_.cfa) push(*context_.cfa);
    for (size_t steps = 0; !reader_.at_end() && outcome_ == ExpressionOutcome::kOk; steps++) {
      if (steps == kExpressionStepLimit) return ExpressionOutcome::kBroken;
      step(reader_.u8());
      if (!reader_.ok()) return ExpressionOutcome::kBroken;
    }
    if (outcome_ != ExpressionOutcome::kOk) return outcome_;
    if (depth_ == 0) return ExpressionOutcome::kBroken;
    result = stack_[depth_ - 1];
    return ExpressionOutcome::kOk;
  }

 private:
  void step(uint8_t op) {
    if (op >= kLit0 && op < kReg0) return push(op - kLit0);
    if (op >= kBreg0 && op < kRegx) return push_register(op - kBreg0, reader_.sleb());
    if (op >= kAbs && op <= kXor && op != kPlusUconst && op != kAbs && op != kNeg && op != kNot) return arithmetic(op);
    if (op >= kEq && op <= kNe) return compare(op);
    if (op >= kDup && op <= kRot) return shuffle(op);
    if (op >= kConst1u && op <= kConsts) return push(constant(op));
    other(op);
  }

  void other(uint8_t op) {
    switch (op) {
      case kAddr: return push(reader_.u64() + context_.bias);
      case kDeref: return deref(8);
      case kDerefSize: return deref(reader_.u8());
      case kAbs: {
        uint64_t value = pop();
        return push(static_cast<int64_t>(value) < 0 ? 0 - value : value);
      }
      case kNeg: return push(0 - pop());
      case kNot: return push(~pop());
      case kPlusUconst: {
        uint64_t operand = reader_.uleb();
        return push(pop() + operand);
      }
      case kBregx: {
        uint64_t number = reader_.uleb();
        return push_register(number, reader_.sleb());
      }
      case kSkip: return jump(reader_.read<int16_t>());
      case kBra: {
        int16_t distance = reader_.read<int16_t>();
        if (pop() != 0) jump(distance);
        return;
      }
      case kCallFrameCfa: return context_.cfa ? push(*context_.cfa) : broken();
      case kNopOp: return;
      default: return broken();
    }
  }

  uint64_t constant(uint8_t op) {
    switch (op) {
      case kConst1u: return reader_.u8();
      case kConst1s: return static_cast<uint64_t>(reader_.read<int8_t>());
      case kConst2u: return reader_.u16();
      case kConst2s: return static_cast<uint64_t>(reader_.read<int16_t>());
      case kConst4u: return reader_.u32();
      case kConst4s: return static_cast<uint64_t>(reader_.read<int32_t>());
      case kConstu: return reader_.uleb();
      case kConsts: return static_cast<uint64_t>(reader_.sleb());
      default: return reader_.u64();
    }
  }

  void arithmetic(uint8_t op) {
    uint64_t right = pop(), left = pop();
    if ((op == kDiv || op == kMod) && right == 0) return broken();
    bool shift_fits = right < 64;
    switch (op) {
      case kAnd: return push(left & right);
      case kDiv: return push(divide(static_cast<int64_t>(left), static_cast<int64_t>(right)));
      case kMinus: return push(left - right);
      case kMod: return push(left % right);
      case kMul: return push(left * right);
      case kOr: return push(left | right);
      case kPlus: return push(left + right);
      case kShl: return push(shift_fits ? left << right : 0);
      case kShr: return push(shift_fits ? left >> right : 0);
      case kShra: return push(static_cast<uint64_t>(static_cast<int64_t>(left) >> (shift_fits ? right : 63)));
      case kXor: return push(left ^ right);
      default: return broken();
    }
  }

  static uint64_t divide(int64_t left, int64_t right) {
    if (right == -1) return 0 - static_cast<uint64_t>(left);  // INT64_MIN / -1 does not fit
    return static_cast<uint64_t>(left / right);
  }

  void compare(uint8_t op) {
    int64_t right = static_cast<int64_t>(pop()), left = static_cast<int64_t>(pop());
    switch (op) {
      case kEq: return push(left == right);
      case kGe: return push(left >= right);
      case kGt: return push(left > right);
      case kLe: return push(left <= right);
      case kLt: return push(left < right);
      default: return push(left != right);
    }
  }

  void shuffle(uint8_t op) {
    switch (op) {
      case kDup: return pick(0);
      case kOver: return pick(1);
      case kPick: return pick(reader_.u8());
      case kDrop: pop(); return;
      case kSwap: {
        uint64_t top = pop(), second = pop();
        push(top);
        return push(second);
      }
      default: {  // rot: the top goes below the next two
        uint64_t top = pop(), second = pop(), third = pop();
        push(top);
        push(third);
        return push(second);
      }
    }
  }

  void pick(size_t index) {
    if (index >= depth_) return broken();
    push(stack_[depth_ - 1 - index]);
  }

  void deref(unsigned size) {
    if (size == 0 || size > 8) return broken();
    uint64_t value = 0;
    Memory::Read read = context_.memory.read_u64(pop(), value);
    if (outcome_ != ExpressionOutcome::kOk) return;
    if (read == Memory::Read::kBeyondSnapshot) return fail(ExpressionOutcome::kBeyondSnapshot);
    if (read != Memory::Read::kOk) return fail(ExpressionOutcome::kUnreadable);
    push(size == 8 ? value : value & ((uint64_t{1} << (8 * size)) - 1));
  }

  void push_register(uint64_t number, int64_t offset) {
    if (number >= CP_MAX_REGISTERS || !(context_.registers.valid >> number & 1))
      return fail(ExpressionOutcome::kMissingRegister);
    push(context_.registers.value[number] + static_cast<uint64_t>(offset));
  }

  void jump(int16_t distance) {
    int64_t target = static_cast<int64_t>(reader_.position()) + distance;
    if (target < 0) return broken();
    reader_.seek(static_cast<uint64_t>(target));
  }

  void push(uint64_t value) {
    if (depth_ == stack_.size()) return broken();
    stack_[depth_++] = value;
  }
  uint64_t pop() {
    if (depth_ == 0) {
      broken();
      return 0;
    }
    return stack_[--depth_];
  }
  void fail(ExpressionOutcome outcome) {
    if (outcome_ == ExpressionOutcome::kOk) outcome_ = outcome;
  }
  void broken() { fail(ExpressionOutcome::kBroken); }

  ByteReader reader_;
  const ExpressionContext& context_;
  std::array<uint64_t, kExpressionStackLimit> stack_{};
  size_t depth_ = 0;
  ExpressionOutcome outcome_ = ExpressionOutcome::kOk;
};

std::optional<RegisterPlusOffset> read_breg(ByteReader& reader) {
  uint8_t op = reader.u8();
  RegisterPlusOffset found;
  if (op >= kBreg0 && op < kRegx)
    found.number = op - kBreg0;
  else if (op == kBregx)
    found.number = static_cast<uint32_t>(reader.uleb());
  else
    return std::nullopt;
  found.offset = reader.sleb();
  if (!reader.ok()) return std::nullopt;
  return found;
}

// plus_uconst n; or lit n / const1u n followed by plus.
std::optional<int64_t> read_addition(ByteReader& reader) {
  uint8_t op = reader.u8();
  if (op == kPlusUconst) return static_cast<int64_t>(reader.uleb());
  int64_t value = 0;
  if (op >= kLit0 && op < kReg0)
    value = op - kLit0;
  else if (op == kConst1u)
    value = reader.u8();
  else
    return std::nullopt;
  if (reader.u8() != kPlus) return std::nullopt;
  return value;
}

}  // namespace

ExpressionOutcome evaluate(ExpressionBytes expression, const ExpressionContext& context, uint64_t& result) {
  return Evaluator(expression, context).run(result);
}

std::optional<RegisterPlusOffset> match_register_plus_offset(ExpressionBytes expression) {
  ByteReader reader(expression);
  auto found = read_breg(reader);
  return reader.at_end() && reader.ok() ? found : std::nullopt;
}

std::optional<DerefExpression> match_deref(ExpressionBytes expression) {
  ByteReader reader(expression);
  auto base = read_breg(reader);
  if (!base || reader.u8() != kDeref) return std::nullopt;
  DerefExpression found{base->number, base->offset, 0};
  if (!reader.at_end()) {
    auto post = read_addition(reader);
    if (!post) return std::nullopt;
    found.post = *post;
  }
  if (!reader.at_end() || !reader.ok()) return std::nullopt;
  return found;
}

std::optional<unsigned> match_plt(ExpressionBytes expression) {
  constexpr uint8_t kRsp = kBreg0 + 7, kRip = kBreg0 + 16;
  constexpr uint8_t kHead[] = {kRsp, 8, kRip, 0, kLit0 + 15, kAnd};
  constexpr uint8_t kTail[] = {kGe, kLit0 + 3, kShl, kPlus};
  if (expression.size() != sizeof(kHead) + 1 + sizeof(kTail)) return std::nullopt;
  auto byte = [&](size_t i) { return static_cast<uint8_t>(expression[i]); };
  for (size_t i = 0; i < sizeof(kHead); i++)
    if (byte(i) != kHead[i]) return std::nullopt;
  for (size_t i = 0; i < sizeof(kTail); i++)
    if (byte(sizeof(kHead) + 1 + i) != kTail[i]) return std::nullopt;
  unsigned n = byte(sizeof(kHead));
  if (n < kLit0 || n > kLit0 + 15) return std::nullopt;
  return n - kLit0;
}

}  // namespace cprof::unwind
