#include "unwind/core/unwind_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace {

TEST(FindRule, FindsEveryPcOfAFullPage) {
  // Page 0: a row per byte (the most there can be); page 1: nothing; page 2: two rows.
  std::vector<cp_row> rows;
  for (uint32_t i = 0; i < 4096; i++) rows.push_back(CP_MAKE_ROW(i, i % 7));
  rows.push_back(CP_MAKE_ROW(0, 1));
  rows.push_back(CP_MAKE_ROW(0x800, 6));
  std::vector<uint32_t> pages{0, 4096, 4096, 4098};
  std::vector<cp_rule> rules(7);
  cp_table table{rows.data(), pages.data(), rules.data(), 0x10000, 3, 7};
  for (uint32_t i = 0; i < 4096; i++) ASSERT_EQ(cp_find_rule(&table, 0x10000 + i), &rules[i % 7]);
  EXPECT_EQ(cp_find_rule(&table, 0x11000), nullptr);
  EXPECT_EQ(cp_find_rule(&table, 0x12000), &rules[1]);
  EXPECT_EQ(cp_find_rule(&table, 0x127ff), &rules[1]);
  EXPECT_EQ(cp_find_rule(&table, 0x12800), &rules[6]);
  EXPECT_EQ(cp_find_rule(&table, 0x12fff), &rules[6]);
  EXPECT_EQ(cp_find_rule(&table, 0x13000), nullptr);
  EXPECT_EQ(cp_find_rule(&table, 0xffff), nullptr);
  EXPECT_EQ(cp_find_rule(&table, ~0ull), nullptr);
}

TEST(FindRule, RowWithAWrongRuleIsNoRule) {
  cp_row row = CP_MAKE_ROW(0, 9);
  uint32_t pages[2] = {0, 1};
  cp_rule rule{};
  cp_table table{&row, pages, &rule, 0, 1, 1};
  EXPECT_EQ(cp_find_rule(&table, 5), nullptr);
}

using Words = std::map<uint64_t, uint64_t>;
int read_words(void* context, uint64_t address, uint64_t* value) {
  Words& words = *static_cast<Words*>(context);
  if (!words.contains(address)) return 1;
  *value = words[address];
  return 0;
}

class Step : public testing::Test {
 protected:
  Step() {
    frame_.pc = 0x4000;
    frame_.sp = 0x1000;
    frame_.fp = 0x1100;
    frame_.lr = 0x7777;
    frame_.exact = 1;
  }
  cp_status step(const cp_machine& machine = cp_machine_x86_64) { return cp_step(&machine, &rule_, &frame_, read_words, &words_); }
  void expect(uint64_t pc, uint64_t sp, uint64_t fp) {
    EXPECT_EQ(step(), CP_OK);
    EXPECT_EQ(frame_.pc, pc);
    EXPECT_EQ(frame_.sp, sp);
    EXPECT_EQ(frame_.fp, fp);
    EXPECT_EQ(frame_.exact, 0);
  }
  Words words_;
  cp_rule rule_{};
  cp_frame frame_{};
};

TEST_F(Step, StackPointerRule) {
  rule_.cfa_kind = CP_CFA_SP;
  rule_.offset = 32;
  rule_.fp_kind = CP_FP_AT_CFA;
  rule_.fp_offset = -16;
  words_ = {{0x1018, 0x5000}, {0x1010, 0x2222}};
  expect(0x5000, 0x1020, 0x2222);
}

TEST_F(Step, FramePointerRuleAndDrap) {
  rule_.cfa_kind = CP_CFA_DEREF_FP;
  rule_.deref = {-8, 16};
  rule_.fp_kind = CP_FP_AT_FP;
  rule_.fp_offset = 0;
  words_ = {{0x10f8, 0x1200}, {0x1208, 0x5000}, {0x1100, 0x3333}};
  expect(0x5000, 0x1210, 0x3333);
}

TEST_F(Step, PltDependsOnThePcInItsEntry) {
  rule_.cfa_kind = CP_CFA_PLT;
  rule_.offset = 11;
  words_ = {{0x1000, 0x5000}, {0x1008, 0x6000}};
  frame_.pc = 0x400a;
  cp_frame before = frame_;
  expect(0x5000, 0x1008, 0x1100);
  frame_ = before;
  frame_.pc = 0x400b;
  expect(0x6000, 0x1010, 0x1100);
}

TEST_F(Step, RegistersOnlyWhereTheyAreKnown) {
  uint64_t registers[CP_MAX_REGISTERS] = {};
  registers[10] = 0x1400;
  registers[5] = 0x5000;
  rule_.cfa_kind = CP_CFA_REG;
  rule_.narrow = {8, 10};
  words_ = {{0x1400, 0x5000}};
  EXPECT_EQ(step(), CP_NEEDS_REGISTERS);
  frame_.registers = registers;
  EXPECT_EQ(step(), CP_NEEDS_REGISTERS);
  frame_.valid = 1 << 10 | 1 << 5;
  cp_frame before = frame_;
  expect(0x5000, 0x1408, 0x1100);
  EXPECT_EQ(frame_.registers, nullptr);
  frame_ = before;
  rule_ = {};
  rule_.cfa_kind = CP_CFA_SP;
  rule_.ra_kind = CP_RA_REGISTER;
  rule_.narrow = {0, 5};
  expect(0x5000, 0x1000, 0x1100);  // vfork: nothing is on the stack
}

TEST_F(Step, FailuresLeaveTheFrameAlone) {
  rule_.cfa_kind = CP_CFA_SP;
  rule_.offset = 16;
  EXPECT_EQ(step(), CP_READ_FAILED);
  EXPECT_EQ(frame_.sp, 0x1000u);
  rule_.offset = -8;
  EXPECT_EQ(step(), CP_NO_PROGRESS);
  rule_.offset = 0;
  frame_.exact = 0;
  EXPECT_EQ(step(), CP_NO_PROGRESS);
  struct { int kind; cp_status status; } cases[] = {{CP_CFA_NONE, CP_NO_RULE}, {CP_CFA_STOP, CP_STOPPED},
                                                    {CP_CFA_COMPLEX, CP_NEEDS_CFI}, {CP_CFA_BAD, CP_BROKEN}, {77, CP_NO_RULE}};
  for (auto& c : cases) {
    rule_.cfa_kind = static_cast<uint8_t>(c.kind);
    EXPECT_EQ(step(), c.status);
  }
  EXPECT_EQ(frame_.pc, 0x4000u);
}

TEST_F(Step, SignalFrameOfX86) {
  rule_.cfa_kind = CP_CFA_SIGNAL;
  words_ = {{0x1000 + 40 + 80, 0x66}, {0x1000 + 160, 0x77}, {0x1000 + 168, 0x88}};
  EXPECT_EQ(step(), CP_OK);
  EXPECT_EQ(frame_.fp, 0x66u);
  EXPECT_EQ(frame_.sp, 0x77u);  // any stack: an alternate one may lie higher
  EXPECT_EQ(frame_.pc, 0x88u);
  EXPECT_EQ(frame_.exact, 1);
}

TEST_F(Step, Aarch64ReturnAddressKinds) {
  rule_.cfa_kind = CP_CFA_SP;
  rule_.ra_kind = CP_RA_IN_LR;
  cp_frame before = frame_;
  EXPECT_EQ(step(cp_machine_aarch64), CP_OK);
  EXPECT_EQ(frame_.pc, 0x7777u);

  frame_ = before;
  rule_.offset = 64;
  rule_.fp_kind = CP_FP_AT_CFA;
  rule_.fp_offset = -64;
  rule_.ra_kind = CP_RA_AFTER_FP;
  words_ = {{0x1000, 0x2222}, {0x1008, 0xff00000000005000}};
  EXPECT_EQ(step(cp_machine_aarch64), CP_OK);
  EXPECT_EQ(frame_.pc, 0x5000u);
  EXPECT_EQ(frame_.fp, 0x2222u);

  frame_ = before;
  rule_.fp_kind = CP_FP_SAME;
  rule_.ra_kind = CP_RA_AT_CFA;
  EXPECT_EQ(step(cp_machine_aarch64), CP_OK);
  EXPECT_EQ(frame_.pc, 0x2222u);

  frame_ = before;
  rule_.ra_kind = CP_RA_AT_SECOND;
  rule_.narrow = {64, -56};
  EXPECT_EQ(step(cp_machine_aarch64), CP_OK);
  EXPECT_EQ(frame_.pc, 0x5000u);
}

}  // namespace
