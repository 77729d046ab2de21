#include "pipeline/call_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace cprof::pipeline {
namespace {

bool x86(std::vector<uint8_t> code) { return ends_with_call(std::as_bytes(std::span(code)), event::Arch::kX86_64); }
bool arm(std::vector<uint8_t> code) { return ends_with_call(std::as_bytes(std::span(code)), event::Arch::kAarch64); }

TEST(CallCheck, KnowsEveryFormOfCallOnX86) {
  EXPECT_TRUE(x86({0xe8, 1, 2, 3, 4})) << "call rel32";
  EXPECT_TRUE(x86({0xff, 0xd0})) << "call *%rax";
  EXPECT_TRUE(x86({0x41, 0xff, 0xd7})) << "call *%r15";
  EXPECT_TRUE(x86({0xff, 0x10})) << "call *(%rax)";
  EXPECT_TRUE(x86({0xff, 0x50, 0x18})) << "call *0x18(%rax)";
  EXPECT_TRUE(x86({0xff, 0x90, 0, 1, 0, 0})) << "call *0x100(%rax)";
  EXPECT_TRUE(x86({0xff, 0x15, 1, 2, 3, 4})) << "call *x(%rip)";
  EXPECT_TRUE(x86({0xff, 0x14, 0xc5, 1, 2, 3, 4})) << "call *x(,%rax,8)";
  EXPECT_TRUE(x86({0xff, 0x54, 0x24, 0x08})) << "call *8(%rsp)";
}

TEST(CallCheck, RefusesWhatIsNoCall) {
  EXPECT_FALSE(x86({}));
  EXPECT_FALSE(x86({0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90}));
  EXPECT_FALSE(x86({0xff, 0xe0})) << "jmp *%rax";
  EXPECT_FALSE(x86({0xe9, 1, 2, 3, 4})) << "jmp rel32";
}

TEST(CallCheck, KnowsCallsOnAarch64) {
  EXPECT_TRUE(arm({0x01, 0x00, 0x00, 0x94})) << "bl";
  EXPECT_TRUE(arm({0x00, 0x02, 0x3f, 0xd6})) << "blr x16";
  EXPECT_FALSE(arm({0xc0, 0x03, 0x5f, 0xd6})) << "ret";
  EXPECT_FALSE(arm({0x1f, 0x20, 0x03, 0xd5})) << "nop";
}

}  // namespace
}  // namespace cprof::pipeline
