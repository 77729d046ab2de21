// Every row of real files against an independent reader: `readelf -wF` prints CFA, rbp and the return address per pc.
#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "unwind/cfi/module_table_impl.h"

namespace cprof::unwind {
namespace {

struct ReferenceRow {
  uint64_t pc = 0;
  std::map<std::string, std::string> columns;
};

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<ReferenceRow> read_reference(const std::string& path) {
  std::vector<ReferenceRow> rows;
  FILE* pipe = popen(fmt::format("readelf -wF '{}' 2>/dev/null", path).c_str(), "r");
  if (!pipe) return rows;
  std::vector<std::string> names;
  bool in_fde = false;
  char buffer[4096];
  while (fgets(buffer, sizeof(buffer), pipe)) {
    std::string line = buffer;
    if (line.find(" CIE ") != std::string::npos) in_fde = false;
    if (line.find(" FDE ") != std::string::npos) in_fde = true;
    auto words = words_of(line);
    if (words.size() >= 2 && words[0] == "LOC") names = words;
    if (!in_fde || words.size() != names.size() || words[0].size() != 16 || words.size() < 2) continue;
    ReferenceRow row;
    row.pc = std::stoull(words[0], nullptr, 16);
    for (size_t i = 1; i < words.size(); i++) row.columns[names[i]] = words[i];
    rows.push_back(row);
  }
  pclose(pipe);
  return rows;
}

std::string signed_text(const char* base, int64_t offset) { return fmt::format("{}{:+}", base, offset); }

std::string cfa_text(const cp_rule& rule) {
  constexpr const char* kNames[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
                                    "r9",  "r10", "r11", "r12", "r13", "r14", "r15", "rip"};
  int64_t offset = CP_RA_IS_NARROW(rule.ra_kind) ? rule.narrow.offset : rule.offset;
  switch (rule.cfa_kind) {
    case CP_CFA_SP: return signed_text("rsp", offset);
    case CP_CFA_FP: return signed_text("rbp", offset);
    case CP_CFA_REG: return signed_text(kNames[rule.narrow.second], rule.narrow.offset);
    case CP_CFA_PLT:
    case CP_CFA_SIGNAL:
    case CP_CFA_DEREF_FP:
    case CP_CFA_DEREF_SP: return "exp";
    default: return fmt::format("kind {}", rule.cfa_kind);
  }
}

std::string rbp_text(const cp_rule& rule) {
  if (rule.cfa_kind == CP_CFA_SIGNAL || rule.fp_kind == CP_FP_AT_FP) return "exp";
  if (rule.fp_kind == CP_FP_AT_CFA) return signed_text("c", rule.fp_offset);
  return "u";
}

std::string ra_text(const cp_rule& rule) {
  if (rule.cfa_kind == CP_CFA_SIGNAL) return "exp";
  if (rule.ra_kind == CP_RA_BELOW_CFA) return "c-8";
  if (rule.ra_kind == CP_RA_AT_SECOND) return signed_text("c", rule.narrow.second);
  return rule.narrow.second == 5 ? "rdi" : fmt::format("r{}", rule.narrow.second);
}

std::string row_difference(const ReferenceRow& row, const ModuleTable::Impl& module) {
  const cp_rule* rule = cp_find_rule(&module.table, row.pc);
  auto column = [&](const char* name) { return row.columns.contains(name) ? row.columns.at(name) : "u"; };
  if (!rule) return "no row";
  if (column("ra") == "u") return rule->cfa_kind == CP_CFA_STOP ? "" : "not the root";
  if (rule->cfa_kind == CP_CFA_COMPLEX)  // an expression, or a caller's rsp that is not the CFA (setcontext)
    return column("CFA") == "exp" || column("rbp") == "vexp" || column("rsp") != "u" ? "" : "complex";
  std::string ours = cfa_text(*rule) + " " + rbp_text(*rule) + " " + ra_text(*rule);
  std::string rbp = column("rbp") == "s" ? "u" : column("rbp");
  std::string theirs = column("CFA") + " " + rbp + " " + column("ra");
  return ours == theirs ? "" : ours + " instead of " + theirs;
}

bool is_code(const object::ElfFile& file, uint64_t pc) {
  return std::ranges::any_of(file.segments(), [&](const object::Segment& s) {
    return s.flags & PF_X && pc >= s.vaddr && pc - s.vaddr < s.memory_size;
  });
}

class EveryRow : public testing::TestWithParam<const char*> {};

TEST_P(EveryRow, EqualsReadelf) {
  if (system("readelf --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs binutils' readelf";
  std::string path = GetParam();
  if (path == "the test program") path = std::filesystem::read_symlink("/proc/self/exe");
  auto file = object::ElfFile::open(path);
  if (!file) GTEST_SKIP() << file.error().message;
  auto table = ModuleTable::compile(**file, nullptr);
  ASSERT_TRUE(table) << table.error().message;
  auto rows = read_reference(path);
  ASSERT_GT(rows.size(), 100u);
  size_t differences = 0;
  for (const ReferenceRow& row : rows) {
    if (!is_code(**file, row.pc)) continue;  // what a linker left of a function that it took out
    std::string difference = row_difference(row, (*table)->impl());
    if (difference.empty()) continue;
    if (differences++ < 20) ADD_FAILURE() << fmt::format("{:#x}: {}", row.pc, difference);
  }
  EXPECT_EQ(differences, 0u) << "of " << rows.size() << " rows";
}

INSTANTIATE_TEST_SUITE_P(RealFiles, EveryRow,
                         testing::Values("/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                                         "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "the test program"));

}  // namespace
}  // namespace cprof::unwind
