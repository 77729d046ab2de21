// Functions of programs that are assembled here: where each begins and can be left; skipped where there is no compiler.
#include "uprobe/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "symbolize/test_program.h"
#include "uprobe/exit_sites.h"

namespace cprof::uprobe {
namespace {

using symbolize::TestDirectory;

// A function of these instructions; what follows the label is what a test looks for.
std::string function(const std::string& name, const std::string& body, bool has_size = true) {
  return ".globl " + name + "\n.type " + name + ", @function\n" + name + ":\n" + body + "\n" + (has_size ? ".size " + name + ", .-" + name + "\n" : "");
}

class Assembled : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestDirectory::has("cc")) GTEST_SKIP() << "needs cc";
  }
  // The functions that the patterns match, by name.
  std::map<std::string, ProbedFunction> find(const std::string& text, std::vector<std::string> patterns = {"*"}, size_t most = 0) {
    dir.write("p.s", ".text\n" + text + "\n.section .note.GNU-stack,\"\",@progbits\n");
    EXPECT_TRUE(dir.shell("cc -nostdlib -shared -Wl,-Bsymbolic -o p p.s"));
    file = dir.open("p");
    finder.emplace(FunctionFinder::Options{.most_functions = most});
    std::vector<FunctionPattern> parsed;
    for (const std::string& pattern : patterns) parsed.push_back(*FunctionPattern::parse(pattern));
    const auto found = finder->add(0, *file, nullptr, parsed);
    problem = found ? "" : found.error().message;
    if (found) matched = *found;
    std::map<std::string, ProbedFunction> by_name;
    for (const ProbedFunction& f : finder->functions()) by_name[f.name] = f;
    return by_name;
  }
  static std::vector<int> kinds(const ProbedFunction& function) {
    std::vector<int> kinds;
    for (const uprobe_site& site : function.exits) kinds.push_back(site.kind);
    return kinds;
  }
  TestDirectory dir;
  std::shared_ptr<object::ElfFile> file;
  std::optional<FunctionFinder> finder;
  std::vector<size_t> matched;
  std::string problem;
};

TEST_F(Assembled, EveryReturnIsAnExit) {
  auto f = find(function("f", "test %edi,%edi\n je 1f\n ret\n1: rep ret\n .byte 0xc2, 8, 0"))["f"];
  EXPECT_EQ(kinds(f), (std::vector<int>{UPROBE_EXIT, UPROBE_EXIT, UPROBE_EXIT}));
  EXPECT_EQ(f.entries.size(), 1u);
  EXPECT_EQ(f.why_untimed, "");
}

TEST_F(Assembled, JumpsToOtherFunctionsAreExits) {
  auto all = find(function("g", "ret") + function("f", "test %edi,%edi\n js g\n 2: dec %edi\n jg 2b\n jmp g"));
  const auto& exits = all["f"].exits;
  ASSERT_EQ(exits.size(), 2u);
  EXPECT_EQ(exits[0].condition, 8);  // js
  EXPECT_EQ(exits[1].condition, UPROBE_ALWAYS);
  EXPECT_EQ(kinds(all["f"]), (std::vector<int>{UPROBE_EXIT, UPROBE_EXIT}));
}

TEST_F(Assembled, AJumpToTheOwnEntryGoesOn) {
  auto f = find(function("f", "dec %rdi\n jnz f\n ret"))["f"];
  EXPECT_EQ(kinds(f), (std::vector<int>{UPROBE_CONTINUE, UPROBE_EXIT}));
  EXPECT_EQ(f.exits[0].condition, 5);  // jne
}

TEST_F(Assembled, IndirectJumpsSayWhereTheyGo) {
  auto f = find(function("f", "jmp *%rax\n notrack jmp *%r11\n jmp *8(%rdi)\n jmp *-16(%r12,%rcx,8)\n jmp *place(%rip)\nplace: ret"))["f"];
  ASSERT_EQ(f.exits.size(), 6u);
  EXPECT_EQ(f.exits[0].jump, UPROBE_BY_REGISTER);
  EXPECT_EQ(f.exits[0].base, 0);
  EXPECT_EQ(f.exits[1].base, 11);
  EXPECT_EQ(f.exits[2].jump, UPROBE_BY_MEMORY);
  EXPECT_EQ(f.exits[2].base, 7);
  EXPECT_EQ(f.exits[2].index, UPROBE_NO_REGISTER);
  EXPECT_EQ(f.exits[2].displacement, 8);
  EXPECT_EQ(f.exits[3].base, 12);
  EXPECT_EQ(f.exits[3].index, 1);
  EXPECT_EQ(f.exits[3].scale, 8);
  EXPECT_EQ(f.exits[3].displacement, -16);
  EXPECT_EQ(f.exits[4].jump, UPROBE_FIXED);
  EXPECT_EQ(f.exits[0].end - f.exits[0].start, f.exits[5].address + 1 - f.entries[0].address);
}

TEST_F(Assembled, ColdPartsAreNoFunctionsButTheirReturnsAreExits) {
  auto all = find(function("f", "test %edi,%edi\n jne f.cold\n ret") + function("f.cold", "nop\n ret") + function("unrelated", "ret"), {"f*"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(kinds(all["f"]), (std::vector<int>{UPROBE_EXIT, UPROBE_EXIT}));
}

TEST_F(Assembled, ClonesAreTheFunction) {
  auto all = find(function("_Z4workv", "test %edi,%edi\n jne _Z4workv.part.0\n ret") + function("_Z4workv.part.0", "ret") +
                      function("_Z4workv.constprop.0", "call _Z4workv\n ret"),
                  {"work"});
  ASSERT_EQ(all.size(), 1u);
  const ProbedFunction& work = all["work()"];
  EXPECT_EQ(work.entries.size(), 3u);
  EXPECT_EQ(std::ranges::count(work.exits, UPROBE_CONTINUE, &uprobe_site::kind), 1);
  EXPECT_EQ(std::ranges::count(work.exits, UPROBE_EXIT, &uprobe_site::kind), 3);
}

TEST_F(Assembled, WhatIsNoCodeIsNeverProbed) {
  auto all = find(function("data", "jmp 1f\n .byte 0xc3, 0x06\n1: ret") + function("between", "jmp 1f + 1\n1: mov $0xc3, %eax\n ret"));
  for (const char* name : {"data", "between"}) {
    EXPECT_TRUE(all[name].exits.empty()) << name;
    EXPECT_NE(all[name].why_untimed, "") << name;
    EXPECT_EQ(all[name].entries.size(), 1u) << name;
  }
  EXPECT_EQ(finder->diagnostics().count("functions_without_exits"), 2u);
}

TEST_F(Assembled, AliasesAreProbedOnce) {
  auto all = find(function("visible", ".globl _other\n.type _other, @function\n_other: ret"));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all.contains("visible"));
}

TEST_F(Assembled, SizelessFunctionsReachToTheNext) {
  auto all = find(function("f", "nop\n ret", false) + function("g", "ret"));
  EXPECT_EQ(kinds(all["f"]), std::vector<int>{UPROBE_EXIT});
}

TEST_F(Assembled, PatternsCountWhatTheyMatch) {
  const std::string text = function("_ZN2ns1fEi", "ret") + function("_ZN2ns1gEi", "ret") + function("plain", "ret");
  EXPECT_EQ(find(text, {"ns::*", "nothing", "_ZN2ns1fEi", "ns::f(int)", "ns::f"}).size(), 2u);
  EXPECT_EQ(matched, (std::vector<size_t>{2, 0, 1, 1, 1}));
  EXPECT_EQ(find(text, {"*"}, 2).size(), 0u);
  EXPECT_NE(problem.find("--max-functions"), std::string::npos) << problem;
}

TEST_F(Assembled, IfuncsAreChoicesNotFunctions) {
  auto all = find(function("real", "ret") + ".globl chosen\n.type chosen, @gnu_indirect_function\nchosen: lea real(%rip), %rax\n ret\n.size chosen, .-chosen\n", {"chosen"});
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(finder->chosen_at_run_time(), std::vector<std::string>{"chosen"});
}

TEST(EntryPlace, BehindABranchMarkWhenAPushFollows) {
  auto place = [](std::initializer_list<unsigned char> code) {
    std::vector<std::byte> bytes;
    for (unsigned char c : code) bytes.push_back(std::byte{c});
    return entry_place(bytes, 0x1000);
  };
  EXPECT_EQ(place({0xf3, 0x0f, 0x1e, 0xfa, 0x55}).address, 0x1004u);
  EXPECT_FALSE(place({0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57}).is_stepped);
  EXPECT_EQ(place({0xf3, 0x0f, 0x1e, 0xfa, 0x89, 0xf8}).address, 0x1000u);
  EXPECT_TRUE(place({0xf3, 0x0f, 0x1e, 0xfa, 0x89, 0xf8}).is_stepped);
  EXPECT_FALSE(place({0x55}).is_stepped);
  EXPECT_TRUE(place({0x48, 0x83, 0xec, 0x08}).is_stepped);
  EXPECT_TRUE(place({}).is_stepped);
}

TEST(Stems, WithoutMarksOfClones) {
  EXPECT_EQ(stem_of("f.constprop.0.isra.1"), "f");
  EXPECT_EQ(stem_of("f@@V2"), "f");
  EXPECT_EQ(stem_of("_ZN1a1bEv.part.3.cold"), "_ZN1a1bEv");
  EXPECT_EQ(stem_of("with.dots"), "with.dots");
  EXPECT_TRUE(is_cold_part("f.part.0.cold"));
  EXPECT_FALSE(is_cold_part("coldf"));
}

}  // namespace
}  // namespace cprof::uprobe
