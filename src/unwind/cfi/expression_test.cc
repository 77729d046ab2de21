#include "unwind/cfi/expression.h"

#include <gtest/gtest.h>

#include "unwind/cfi/cfi_bytes_for_tests.h"

namespace cprof::unwind {
namespace {

class WordMemory final : public Memory {
 public:
  Read read_u64(uint64_t address, uint64_t& value) override {
    if (address == 0x1000) return value = 0x8877665544332211, Read::kOk;
    return address > 0x1000 ? Read::kBeyondSnapshot : Read::kUnreadable;
  }
};

struct Answer {
  ExpressionOutcome outcome;
  uint64_t value = 0;
};
Answer run(const Bytes& bytes, std::optional<uint64_t> cfa = std::nullopt) {
  RegisterSet registers;
  registers.value[7] = 0x1000;
  registers.valid = 1 << 7;
  WordMemory memory;
  Answer answer{};
  answer.outcome = evaluate(bytes.get(), {registers, memory, 0x400000, cfa}, answer.value);
  return answer;
}
void expect(const Bytes& bytes, uint64_t value) {
  Answer answer = run(bytes);
  EXPECT_EQ(answer.outcome, ExpressionOutcome::kOk);
  EXPECT_EQ(answer.value, value);
}
void expect_failure(const Bytes& bytes, ExpressionOutcome outcome) { EXPECT_EQ(run(bytes).outcome, outcome); }
constexpr uint64_t minus(uint64_t v) { return 0 - v; }

TEST(Expression, Constants) {
  expect({0x08, 0xff}, 0xff);
  expect({0x09, 0xff}, minus(1));
  expect(Bytes{0x0a}.u16(0xfffe), 0xfffe);
  expect(Bytes{0x0b}.u16(0xfffe), minus(2));
  expect(Bytes{0x0c}.u32(0xfffffffd), 0xfffffffd);
  expect(Bytes{0x0d}.u32(0xfffffffd), minus(3));
  expect(Bytes{0x0e}.u64(minus(4)), minus(4));
  expect(Bytes{0x0f}.u64(minus(5)), minus(5));
  expect({0x10, 0x80, 0x01}, 128);
  expect({0x11, 0x7f}, minus(1));
  expect({0x30}, 0);
  expect({0x4f}, 31);
  expect(Bytes{0x03}.u64(0x10), 0x400010);  // addr: the file's own, moved to the process
}

TEST(Expression, StackOperations) {
  expect({0x31, 0x12, 0x22}, 2);                                // dup plus
  expect({0x31, 0x32, 0x13}, 1);                                // drop
  expect({0x31, 0x32, 0x14}, 1);                                // over
  expect({0x31, 0x32, 0x33, 0x15, 2}, 1);                       // pick
  expect({0x35, 0x32, 0x16, 0x1c}, minus(3));                   // swap minus
  expect({0x31, 0x32, 0x33, 0x17}, 2);                          // rot: top is the former second
  expect({0x31, 0x32, 0x33, 0x17, 0x13}, 1);
  expect({0x31, 0x32, 0x33, 0x17, 0x13, 0x13}, 3);
}

TEST(Expression, Arithmetic) {
  expect({0x09, 0xfb, 0x19}, 5);                                // abs
  expect({0x3f, 0x36, 0x1a}, 6);                                // and
  expect({0x09, 0xfa, 0x32, 0x1b}, minus(3));                   // div is signed
  expect({0x38, 0x33, 0x1c}, 5);
  expect({0x38, 0x33, 0x1d}, 2);
  expect({0x38, 0x33, 0x1e}, 24);
  expect({0x38, 0x1f}, minus(8));
  expect({0x30, 0x20}, minus(1));
  expect({0x31, 0x36, 0x21}, 7);
  expect({0x38, 0x33, 0x22}, 11);
  expect({0x38, 0x23, 0x80, 0x01}, 136);                        // plus_uconst
  expect({0x31, 0x34, 0x24}, 16);
  expect({0x09, 0x80, 0x3c, 0x25}, minus(128) >> 12);             // shr
  expect({0x09, 0x80, 0x34, 0x26}, minus(8));                   // shra
  expect({0x33, 0x36, 0x27}, 5);
  expect(Bytes{0x0e}.u64(uint64_t{1} << 63).add({0x11, 0x7f, 0x1b}), uint64_t{1} << 63);  // INT64_MIN / -1
  expect({0x31, 0x08, 64, 0x24}, 0);
  expect({0x09, 0x80, 0x08, 200, 0x26}, minus(1));
}

TEST(Expression, ComparisonsAreSigned) {
  struct { int op; bool less, equal, greater; } cases[] = {{0x29, 0, 1, 0}, {0x2a, 0, 1, 1}, {0x2b, 0, 0, 1},
                                                           {0x2c, 1, 1, 0}, {0x2d, 1, 0, 0}, {0x2e, 1, 0, 1}};
  for (auto& c : cases) {
    expect({0x09, 0xff, 0x31, c.op}, c.less);
    expect({0x31, 0x31, c.op}, c.equal);
    expect({0x31, 0x09, 0xff, c.op}, c.greater);
  }
}

TEST(Expression, Jumps) {
  expect({0x31, 0x2f, 1, 0, 0x32, 0x33, 0x22}, 4);              // skip over lit2
  expect({0x31, 0x31, 0x28, 1, 0, 0x32, 0x33, 0x22}, 4);        // bra taken
  expect({0x31, 0x30, 0x28, 1, 0, 0x32, 0x33, 0x22}, 5);        // bra not taken
  expect({0x96, 0x31}, 1);                                      // nop
}

TEST(Expression, MemoryAndRegisters) {
  expect({0x77, 0, 0x06}, 0x8877665544332211);
  expect({0x77, 0, 0x94, 1}, 0x11);
  expect({0x77, 0, 0x94, 4}, 0x44332211);
  expect({0x92, 7, 0x78}, 0xff8);                               // bregx
  expect_failure({0x76, 0}, ExpressionOutcome::kMissingRegister);
  expect_failure({0x92, 0xff, 0x7f, 0}, ExpressionOutcome::kMissingRegister);
  expect_failure({0x77, 8, 0x06}, ExpressionOutcome::kBeyondSnapshot);
  expect_failure({0x31, 0x06}, ExpressionOutcome::kUnreadable);
}

TEST(Expression, CfaIsPushedFirst) {
  EXPECT_EQ(run({0x38, 0x1c}, 0x5000).value, 0x4ff8u);
  EXPECT_EQ(run({0x9c, 0x22}, 0x5000).value, 0xa000u);
  expect_failure({0x9c}, ExpressionOutcome::kBroken);
}

TEST(Expression, HostileProgramsEnd) {
  expect_failure({}, ExpressionOutcome::kBroken);
  expect_failure({0x22}, ExpressionOutcome::kBroken);           // underflow
  expect_failure({0x31, 0x30, 0x1b}, ExpressionOutcome::kBroken);
  expect_failure({0x31, 0x30, 0x1d}, ExpressionOutcome::kBroken);
  expect_failure({0x31, 0x15, 1}, ExpressionOutcome::kBroken);
  expect_failure({0x2f, 0xfd, 0xff}, ExpressionOutcome::kBroken);     // jumps to itself for ever
  expect_failure({0x31, 0x2f, 0xfc, 0xff}, ExpressionOutcome::kBroken);  // and pushes
  expect_failure({0x2f, 0x00, 0x80}, ExpressionOutcome::kBroken);
  expect_failure({0x2f, 0x00, 0x70}, ExpressionOutcome::kBroken);
  expect_failure({0x77, 0, 0x94, 9}, ExpressionOutcome::kBroken);
  expect_failure({0x57}, ExpressionOutcome::kBroken);           // reg7 has no place in CFI
  expect_failure({0xf1}, ExpressionOutcome::kBroken);
  expect_failure({0x0e, 1, 2}, ExpressionOutcome::kBroken);
  Bytes many;
  for (int i = 0; i < 65; i++) many.u8(0x31);
  expect_failure(many, ExpressionOutcome::kBroken);
}

TEST(Expression, KnownShapes) {
  auto plt = [](int n) { return Bytes{0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + n, 0x2a, 0x33, 0x24, 0x22}; };
  for (unsigned n = 0; n < 16; n++) EXPECT_EQ(match_plt(plt(static_cast<int>(n)).get()), n);
  EXPECT_FALSE(match_plt(plt(16).get()));
  EXPECT_FALSE(match_plt(Bytes({0x77, 8}).get()));

  auto deref = match_deref(Bytes({0x76, 0x58, 0x06, 0x23, 8}).get());
  ASSERT_TRUE(deref);
  EXPECT_EQ(deref->number, 6u);
  EXPECT_EQ(deref->first, -40);
  EXPECT_EQ(deref->post, 8);
  EXPECT_EQ(match_deref(Bytes({0x77, 0, 0x06, 0x38, 0x22}).get())->post, 8);
  EXPECT_EQ(match_deref(Bytes({0x77, 16, 0x06}).get())->post, 0);
  EXPECT_FALSE(match_deref(Bytes({0x77, 16, 0x06, 0x06}).get()));
  EXPECT_FALSE(match_deref(Bytes({0x77, 16}).get()));
  EXPECT_EQ(match_register_plus_offset(Bytes({0x92, 6, 0x78}).get())->offset, -8);
  EXPECT_FALSE(match_register_plus_offset(Bytes({0x76, 0, 0x06}).get()));
}

}  // namespace
}  // namespace cprof::unwind
