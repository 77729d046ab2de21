#include "symbolize/sandbox.h"

#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "symbolize/test_program.h"

// A sanitizer's memory does not fit into the sandbox's limit.
#ifndef CPROF_SANITIZED

namespace cprof::symbolize {
namespace {

constexpr const char* kProgram =
    "volatile int sink;\n"
    "inline __attribute__((always_inline)) void crash(int x) { sink = x; sink = x + 1; }\n"
    "__attribute__((noinline)) void work(int x) { crash(x); sink = 7; }\n"
    "int main(int argc, char**) { work(argc); return 0; }\n";

class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestDirectory::has("g++")) GTEST_SKIP() << "needs g++";
    directory.write("a.cc", kProgram);
  }
  static std::vector<uint64_t> addresses_of(object::ElfFile& file) {
    const auto symbols = file.symbols().value_or(std::vector<object::Symbol>());
    const object::Symbol* work = symbol_named(symbols, "_Z4worki");
    std::vector<uint64_t> addresses = {0, UINT64_MAX};
    for (uint64_t at = 0; work && at < work->size; ++at) addresses.push_back(work->address + at);
    return addresses;
  }
  static std::string text_of(const Symbolized& found) {
    std::string text = std::to_string(static_cast<int>(found.miss)) + " " + std::to_string(found.function_start);
    for (const SourceLine& line : found.lines)
      text += " " + std::string(line.name) + " " + std::string(line.system_name) + " " + std::string(line.file) + ":" + std::to_string(line.line) +
              ":" + std::to_string(line.column) + ":" + std::to_string(line.start_line);
    return text;
  }

  TestDirectory directory;
  Demangler demangler{DemangleStyle::kFull};
  Diagnostics losses;
};

TEST_F(Sandbox, ForeignFilesNeedItInEitherPlace) {
  ASSERT_TRUE(directory.shell("g++ -g a.cc -o a && cp a b"));
  const auto own = directory.open("a"), foreign = directory.open("b");
  foreign->mark_foreign();
  EXPECT_FALSE(needs_sandbox(own.get(), nullptr));
  EXPECT_FALSE(needs_sandbox(nullptr, own.get()));
  EXPECT_TRUE(needs_sandbox(foreign.get(), nullptr));
  EXPECT_TRUE(needs_sandbox(own.get(), foreign.get()));
  EXPECT_TRUE(needs_sandbox(nullptr, foreign.get()));
  EXPECT_FALSE(needs_sandbox(nullptr, nullptr));
}

TEST_F(Sandbox, GivesWhatTheFileGives) {
  ASSERT_TRUE(directory.shell("g++ -O2 -g -gz=zlib a.cc -o a"));
  const auto file = directory.open("a");
  const std::vector<uint64_t> addresses = addresses_of(*file);
  ASSERT_GT(addresses.size(), 8u);
  ModuleSymbols inside(file, nullptr, demangler), here(file, nullptr, demangler);
  const auto batch = find_in_sandbox(inside, addresses, losses);
  ASSERT_TRUE(batch) << batch.error().message;
  ASSERT_EQ(batch->results.size(), addresses.size());
  bool any_inlined = false;
  for (size_t i = 0; i < addresses.size(); ++i) {
    EXPECT_EQ(text_of(batch->results[i]), text_of(here.find(addresses[i], losses)));
    any_inlined |= batch->results[i].lines.size() > 1;
  }
  EXPECT_TRUE(any_inlined);
}

// It may not open files, and what it misses by that is counted out here.
TEST_F(Sandbox, LossesComeOut) {
  ASSERT_TRUE(directory.shell("g++ -O2 -g -gsplit-dwarf a.cc -o a"));
  const auto file = directory.open("a");
  ModuleSymbols symbols(file, nullptr, demangler);
  ASSERT_TRUE(find_in_sandbox(symbols, addresses_of(*file), losses));
  ASSERT_EQ(losses.count("dwo_missing"), 1u);
  EXPECT_NE(losses.entries().at("dwo_missing").example.find(".dwo"), std::string::npos);
}

TEST_F(Sandbox, SpoiltFilesHurtNobody) {
  ASSERT_TRUE(directory.shell("g++ -O2 -g a.cc -o a"));
  const auto good = read_text_file(directory.path("a"), 1 << 24);
  ASSERT_TRUE(good);
  const std::vector<uint64_t> addresses = addresses_of(*directory.open("a"));
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::string bad = *good;
    for (int i = 0; i < 200; ++i) bad[bad.size() / 4 + random() % (bad.size() - bad.size() / 4)] = static_cast<char>(random());
    directory.write("bad", bad);
    const auto file = directory.open("bad");
    if (!file) continue;
    ModuleSymbols symbols(file, nullptr, demangler);
    const auto batch = find_in_sandbox(symbols, addresses, losses);
    if (batch) {
      EXPECT_EQ(batch->results.size(), addresses.size());
    }
  }
}

}  // namespace
}  // namespace cprof::symbolize

#endif
