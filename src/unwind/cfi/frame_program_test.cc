#include "unwind/cfi/frame_program.h"

#include <gtest/gtest.h>

#include "unwind/cfi/cfi_bytes_for_tests.h"

namespace cprof::unwind {
namespace {

struct SeenRow {
  uint64_t start, end;
  FrameState state;
};

struct Ran {
  bool is_sound = false;
  uint64_t broken_from = 0;
  std::vector<SeenRow> rows;
  CfiSource source;
};

// An FDE for 0x1000..0x1100 with code alignment 1, data alignment -8, initially CFA = r7 + 8 and r16 at CFA - 8.
std::unique_ptr<Ran> run(const Bytes& instructions, bool is_eh_frame = true) {
  auto ran = std::make_unique<Ran>();
  SectionWriter writer(is_eh_frame);
  size_t cie = writer.usual_cie();
  size_t offset = writer.fde(cie, 0x1000, 0x100, instructions);
  ran->source = writer.source();
  CfiSection section(ran->source);
  auto fde = section.fde_at(offset);
  if (!fde) return ran;
  FrameProgram program(ran->source);
  ran->is_sound = program.run(*fde, [&](uint64_t start, uint64_t end, const FrameState& state) {
    ran->rows.push_back({start, end, state});
    return true;
  }, ran->broken_from);
  return ran;
}

const RegisterRule& rule_of(const Ran& ran, size_t n) { return ran.rows.back().state.registers[n]; }

void expect_rule(const Bytes& instructions, size_t n, RegisterRule::Kind kind, int64_t value) {
  auto ran = run(instructions);
  ASSERT_TRUE(ran->is_sound);
  ASSERT_EQ(ran->rows.size(), 1u);
  EXPECT_EQ(rule_of(*ran, n).kind, kind);
  EXPECT_EQ(rule_of(*ran, n).value, value);
}

void expect_cfa(const Bytes& instructions, uint32_t number, int64_t offset) {
  auto ran = run(instructions);
  ASSERT_TRUE(ran->is_sound);
  EXPECT_EQ(ran->rows.back().state.cfa_kind, FrameState::kRegisterOffset);
  EXPECT_EQ(ran->rows.back().state.cfa_register, number);
  EXPECT_EQ(ran->rows.back().state.cfa_offset, offset);
}

TEST(FrameProgram, InitialStateHoldsForTheWholeFunction) {
  auto ran = run({});
  ASSERT_EQ(ran->rows.size(), 1u);
  EXPECT_EQ(ran->rows[0].start, 0x1000u);
  EXPECT_EQ(ran->rows[0].end, 0x1100u);
  EXPECT_EQ(rule_of(*ran, 16).kind, RegisterRule::kOffset);
  EXPECT_EQ(rule_of(*ran, 16).value, -8);
}

TEST(FrameProgram, RegisterRules) {
  expect_rule({0x86, 2}, 6, RegisterRule::kOffset, -16);                       // offset
  expect_rule({0x05, 6, 3}, 6, RegisterRule::kOffset, -24);                    // offset_extended
  expect_rule({0x11, 6, 0x7d}, 6, RegisterRule::kOffset, 24);                  // offset_extended_sf, -3
  expect_rule({0x2f, 6, 2}, 6, RegisterRule::kOffset, 16);                     // GNU_negative_offset_extended
  expect_rule({0x14, 3, 4}, 3, RegisterRule::kValOffset, -32);                 // val_offset
  expect_rule({0x15, 3, 0x7f}, 3, RegisterRule::kValOffset, 8);                // val_offset_sf
  expect_rule({0x07, 6}, 6, RegisterRule::kUndefined, 0);
  expect_rule({0x08, 6}, 6, RegisterRule::kSameValue, 0);
  expect_rule({0x09, 16, 5}, 16, RegisterRule::kRegister, 5);
  expect_rule({0x86, 2, 0xc6}, 6, RegisterRule::kUnspecified, 0);              // restore
  expect_rule({0x05, 16, 9, 0x06, 16}, 16, RegisterRule::kOffset, -8);         // restore_extended
  expect_rule({0x00, 0x2e, 0x90, 0x01, 0x86, 2}, 6, RegisterRule::kOffset, -16);  // nop, GNU_args_size
  expect_rule({0x05, 90, 1, 0x86, 2}, 6, RegisterRule::kOffset, -16);          // a vector register: read over
}

TEST(FrameProgram, CfaRules) {
  expect_cfa({0x0c, 6, 16}, 6, 16);
  expect_cfa({0x12, 6, 0x7e}, 6, 16);   // def_cfa_sf, -2
  expect_cfa({0x0d, 6}, 6, 8);
  expect_cfa({0x0e, 0x80, 1}, 7, 128);
  expect_cfa({0x13, 0x7d}, 7, 24);      // def_cfa_offset_sf, -3
}

TEST(FrameProgram, Expressions) {
  auto ran = run({0x0f, 3, 0x77, 8, 0x06, 0x10, 6, 2, 0x76, 0x78, 0x16, 3, 1, 0x35});
  ASSERT_TRUE(ran->is_sound);
  const FrameState& state = ran->rows[0].state;
  EXPECT_EQ(state.cfa_kind, FrameState::kCfaExpression);
  ASSERT_EQ(state.cfa_expression().size(), 3u);
  EXPECT_EQ(state.cfa_expression()[2], std::byte{0x06});
  EXPECT_EQ(rule_of(*ran, 6).kind, RegisterRule::kExpression);
  EXPECT_EQ(state.expression(rule_of(*ran, 6))[1], std::byte{0x78});
  EXPECT_EQ(rule_of(*ran, 3).kind, RegisterRule::kValExpression);
  EXPECT_EQ(state.expression(rule_of(*ran, 3))[0], std::byte{0x35});
}

TEST(FrameProgram, EveryAdvanceMakesARow) {
  Bytes code{0x41, 0x0e, 16, 0x02, 0x10, 0x0e, 24, 0x03};
  code.u16(0x20).add({0x0e, 32, 0x04}).u32(0x30).add({0x0e, 40, 0x01}).u64(0x10f0).add({0x0e, 48});
  auto ran = run(code);
  ASSERT_TRUE(ran->is_sound);
  uint64_t starts[] = {0x1000, 0x1001, 0x1011, 0x1031, 0x1061, 0x10f0};
  ASSERT_EQ(ran->rows.size(), 6u);
  for (size_t i = 0; i < 6; i++) {
    EXPECT_EQ(ran->rows[i].start, starts[i]);
    EXPECT_EQ(ran->rows[i].end, i < 5 ? starts[i + 1] : 0x1100);
    EXPECT_EQ(ran->rows[i].state.cfa_offset, static_cast<int64_t>(8 + 8 * i));
  }
}

TEST(FrameProgram, RememberAndRestoreState) {
  auto ran = run({0x0e, 16, 0x86, 2, 0x0a, 0x41, 0x0e, 8, 0xc6, 0x41, 0x0b});
  ASSERT_TRUE(ran->is_sound);
  ASSERT_EQ(ran->rows.size(), 3u);
  EXPECT_EQ(ran->rows[1].state.cfa_offset, 8);
  EXPECT_EQ(ran->rows[1].state.registers[6].kind, RegisterRule::kUnspecified);
  EXPECT_EQ(ran->rows[2].state.cfa_offset, 16);
  EXPECT_EQ(ran->rows[2].state.registers[6].kind, RegisterRule::kOffset);
}

TEST(FrameProgram, NegateRaState) {
  auto ran = run({0x2d, 0x44, 0x2d});
  ASSERT_EQ(ran->rows.size(), 2u);
  EXPECT_TRUE(ran->rows[0].state.return_address_is_signed);
  EXPECT_FALSE(ran->rows[1].state.return_address_is_signed);
}

TEST(FrameProgram, RowsBehindTheEndAreDropped) {
  auto ran = run({0x02, 0xff, 0x0e, 16, 0x41, 0x0e, 24});
  ASSERT_TRUE(ran->is_sound);
  ASSERT_EQ(ran->rows.size(), 2u);
  EXPECT_EQ(ran->rows[1].start, 0x10ffu);
  EXPECT_EQ(ran->rows[1].state.cfa_offset, 16);
}

TEST(FrameProgram, BrokenProgramsKeepTheirGoodRows) {
  Bytes endless;
  for (int i = 0; i < 100; i++) endless.u8(0x0a);
  Bytes back;
  back.add({0x50}).u8(0x01).u64(0x1002);
  Bytes broken[] = {{0x44, 0x3f},                // unknown opcode
                    {0x44, 0x0b},                // restore_state of nothing
                    {0x44, 0x0e, 0x80},          // cut LEB
                    {0x44, 0x0f, 50, 1},         // expression longer than the entry
                    {0x44, 0x0f, 1, 0x30, 0x0e, 8},  // offset of an expression CFA
                    Bytes{0x44}.add(endless), back};
  for (size_t i = 0; i < std::size(broken); i++) {
    auto ran = run(broken[i]);
    EXPECT_FALSE(ran->is_sound) << i;
    ASSERT_EQ(ran->rows.size(), 1u) << i;
    EXPECT_EQ(ran->rows[0].end, i == 6 ? 0x1010u : 0x1004u) << i;
    EXPECT_EQ(ran->broken_from, ran->rows[0].end) << i;
  }
}

}  // namespace
}  // namespace cprof::unwind
