// Two readers of the same CFI must agree: at every row of real files the compact step and the interpreter are given the
// same registers and the same memory (each word a hash of its address) and must find the same caller.
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "unwind/cfi/interpreter.h"

namespace cprof::unwind {
namespace {

constexpr uint64_t kStack = 0x7ffd00001000;

class HashedMemory final : public Memory {
 public:
  Read read_u64(uint64_t address, uint64_t& value) override {
    // Stack addresses, growing with the address, so that a CFA taken from memory still grows.
    value = kStack + 0x100000 + ((address * 0x9e3779b97f4a7c15) >> 44);
    return Read::kOk;
  }
};

int read_hashed(void* memory, uint64_t address, uint64_t* value) {
  return static_cast<HashedMemory*>(memory)->read_u64(address, *value) != Memory::Read::kOk;
}

RegisterSet registers_at(uint64_t pc, bool is_exact) {
  RegisterSet registers;
  for (int n = 0; n < 17; n++) registers.value[n] = kStack + 0x4000 + static_cast<uint64_t>(n) * 0x100;
  registers.value[7] = kStack;
  registers.value[6] = kStack + 0x800;
  registers.value[16] = pc + !is_exact;
  registers.valid = (1u << 17) - 1;
  return registers;
}

std::string compare(const ModuleTable::Impl& module, uint64_t pc, bool is_exact, const cp_rule& rule) {
  HashedMemory memory;
  RegisterSet full = registers_at(pc, is_exact);
  RegisterSet before = full;
  cp_frame frame{};
  frame.pc = before.value[16];
  frame.sp = before.value[7];
  frame.fp = before.value[6];
  frame.registers = before.value;
  frame.valid = before.valid;
  frame.exact = is_exact;
  cp_status row = cp_step(module.machine->core, &rule, &frame, read_hashed, &memory);
  CfiStepInput input{0, is_exact};
  CfiStep cfi = interpret_step(module, input, full, memory);
  if (row == CP_STOPPED || cfi == CfiStep::kRoot) return row == CP_STOPPED && cfi == CfiStep::kRoot ? "" : "root";
  if (row == CP_BROKEN || cfi == CfiStep::kBroken) return row == CP_BROKEN && cfi == CfiStep::kBroken ? "" : "broken";
  if (row == CP_NO_PROGRESS && cfi == CfiStep::kNoProgress) return "";  // vfork's row cannot be a caller's
  if (row != CP_OK || cfi != CfiStep::kOk) return fmt::format("status {} and {}", int(row), int(cfi));
  if (frame.pc != full.value[16]) return "return address";
  if (frame.sp != full.value[7]) return "CFA";
  uint64_t fp = full.valid >> 6 & 1 ? full.value[6] : 0;
  return frame.fp == fp && frame.exact == input.is_exact ? "" : "rbp";
}

struct Walked {
  size_t rows = 0, compared = 0;
};
Walked compare_all(const ModuleTable::Impl& module) {
  Walked walked;
  size_t differences = 0;
  for (size_t page = 0; page + 1 < module.rows.pages.size(); page++) {
    for (uint32_t i = module.rows.pages[page]; i < module.rows.pages[page + 1]; i++) {
      cp_row row = module.rows.rows[i];
      uint64_t pc = module.rows.base + page * 4096 + CP_ROW_PC(row);
      const cp_rule& rule = module.rows.rules[CP_ROW_RULE(row)];
      walked.rows++;
      EXPECT_EQ(cp_find_rule(&module.table, pc), &rule);
      if (rule.cfa_kind == CP_CFA_NONE || rule.cfa_kind == CP_CFA_COMPLEX || !module.find_fde(pc)) continue;
      walked.compared++;
      for (bool is_exact : {true, false}) {
        std::string difference = compare(module, pc, is_exact, rule);
        if (!difference.empty() && differences++ < 10)
          ADD_FAILURE() << fmt::format("{:#x} exact {} kind {}: {}", pc, is_exact, rule.cfa_kind, difference);
      }
    }
  }
  return walked;
}

class RowsAgainstInterpreter : public testing::TestWithParam<const char*> {};

TEST_P(RowsAgainstInterpreter, AgreeAtEveryRow) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(GetParam(), error);
  if (error) GTEST_SKIP() << GetParam() << ": " << error.message();
  auto file = object::ElfFile::open(path.string());
  ASSERT_TRUE(file) << file.error().message;
  auto table = ModuleTable::compile(**file, nullptr);
  ASSERT_TRUE(table) << table.error().message;
  Walked walked = compare_all((*table)->impl());
  EXPECT_GT(walked.rows, 1000u);
  EXPECT_GT(walked.compared * 2, walked.rows);
  EXPECT_EQ((*table)->impl().stats.broken_entries, 0u);
  EXPECT_EQ((*table)->impl().stats.broken_programs, 0u);
}

INSTANTIATE_TEST_SUITE_P(RealFiles, RowsAgainstInterpreter,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/bin/python3",
                                         "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/proc/self/exe"));

}  // namespace
}  // namespace cprof::unwind
