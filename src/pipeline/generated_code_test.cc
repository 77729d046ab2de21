#include "pipeline/generated_code.h"

#include <gtest/gtest.h>

namespace cprof::pipeline {
namespace {

event::KernelSymbol symbol(uint64_t start, uint32_t length, std::string_view name, bool is_removed = false) {
  return {.time_ns = 1, .start = start, .length = length, .name = name, .is_removed = is_removed};
}

TEST(GeneratedCode, WhatComesEndsWhatLayThere) {
  GeneratedCode codes;
  auto name_at = [&](uint64_t address) { return codes.find(address) ? codes.find(address)->name : ""; };
  EXPECT_TRUE(codes.apply(symbol(0x1000, 0x100, "bpf_prog_1_a")));
  EXPECT_FALSE(codes.apply(symbol(0x1000, 0x100, "bpf_prog_1_a"))) << "told again";
  EXPECT_TRUE(codes.apply(symbol(0x2000, 0x100, "bpf_prog_2_b")));
  EXPECT_EQ(name_at(0x10ff), "bpf_prog_1_a");
  EXPECT_EQ(name_at(0x1100), "");
  EXPECT_EQ(name_at(0xfff), "");
  EXPECT_TRUE(codes.apply(symbol(0x1080, 0x1000, "bpf_prog_3_c")));
  EXPECT_EQ(name_at(0x107f), "bpf_prog_1_a");
  EXPECT_EQ(name_at(0x1080), "bpf_prog_3_c");
  EXPECT_EQ(name_at(0x2000), "bpf_prog_3_c") << "what another has overwritten is gone";
  EXPECT_EQ(name_at(0x2090), "");
  EXPECT_TRUE(codes.apply(symbol(0x1080, 0x1000, "bpf_prog_3_c", true)));
  EXPECT_EQ(name_at(0x1080), "");
  EXPECT_FALSE(codes.apply(symbol(0x3000, 0x100, "ftrace_trampoline")));
  EXPECT_FALSE(codes.apply(symbol(~uint64_t{0}, 0x100, "bpf_prog_4")));
}

TEST(GeneratedCode, KallsymsAddsWhatIsNotKnown) {
  GeneratedCode codes;
  codes.apply(symbol(0x1000, 0x100, "bpf_prog_1_a"));
  codes.add({{0x1000, 0x11000, "bpf_prog_1_a"}, {0x20000, 0x21000, "bpf_prog_2_b"}});
  EXPECT_EQ(codes.find(0x1000)->end, 0x1100u) << "a record knows the length";
  EXPECT_TRUE(codes.find(0x1000)->is_told);
  EXPECT_FALSE(codes.find(0x20010)->is_told);
}

TEST(GeneratedCode, PathsSayTheName) {
  EXPECT_EQ(generated_name(path_of_generated("bpf_prog_1_a")), "bpf_prog_1_a");
  for (const char* path : {"[kernel]", "[bpfilter]", "[bpf]", "/bpf_x", ""}) EXPECT_EQ(generated_name(path), "") << path;
  EXPECT_TRUE(is_generated_path("[bpf]"));
  EXPECT_TRUE(is_generated_path("[bpf_trampoline_7]"));
  EXPECT_FALSE(is_generated_path("[kernel]"));
}

}  // namespace
}  // namespace cprof::pipeline
