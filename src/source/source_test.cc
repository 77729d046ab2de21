// Source files and instructions of programs that are compiled here; skipped where there is no compiler.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>

#include "source/binary.h"
#include "source/code.h"
#include "source/source_files.h"
#include "symbolize/test_program.h"

namespace cprof::source {
namespace {

using symbolize::TestDirectory;

TEST(SourceFiles, FoundByItsPathOrUnderARoot) {
  TestDirectory dir;
  ASSERT_TRUE(dir.shell("mkdir -p moved/lib"));
  dir.write("a.c", "one\ntwo\r\n\nfour");
  dir.write("moved/lib/b.c", "moved\n");
  SourceFiles plain({}), rooted({dir.path("nowhere"), dir.path("moved")});
  const auto a = plain.find(dir.path("a.c"));
  ASSERT_TRUE(a) << a.error().message;
  EXPECT_EQ((*a)->size(), 4u);
  EXPECT_EQ((*a)->line(1), "one");
  EXPECT_EQ((*a)->line(2), "two");
  EXPECT_EQ((*a)->line(3), "");
  EXPECT_EQ((*a)->line(4), "four");
  EXPECT_EQ((*a)->line(0), "");
  EXPECT_EQ((*a)->line(5), "");
  EXPECT_EQ((*rooted.find("/build/src/lib/b.c"))->line(1), "moved");
  EXPECT_FALSE(plain.find("/build/src/lib/b.c"));
  EXPECT_NE(plain.find("/build/src/lib/b.c").error().message.find("--source-path"), std::string::npos);
  EXPECT_FALSE(rooted.find("../../../moved/../../a.c")) << "never out of the root";
}

TEST(SourceFiles, OnlyRegularFiles) {
  TestDirectory dir;
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  SourceFiles files({});
  EXPECT_NE(files.find(dir.path("pipe")).error().message.find("not a regular file"), std::string::npos);
  EXPECT_FALSE(files.find("/dev/zero"));
  EXPECT_FALSE(files.find("/"));
  EXPECT_FALSE(files.find(""));
}

class Program : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestDirectory::has("cc")) GTEST_SKIP() << "needs cc";
    dir.write("p.c", "volatile int sink;\nstatic inline __attribute__((always_inline)) int twice(int n) { sink = n; return n * 2; }\n"
                     "__attribute__((noinline)) int f(int n) {\n  sink = n;\n  return twice(sink) + 1;\n}\nint main(void) { return f(3); }\n");
    ASSERT_TRUE(dir.shell("cc -g -O1 -Wl,--build-id -o p p.c && cc -O1 -Wl,--build-id=none -o bare p.c"));
    file = dir.open("p");
    ASSERT_TRUE(file);
  }
  uint64_t address_of(std::string_view name) {
    const auto symbols = file->symbols();
    const object::Symbol* symbol = symbolize::symbol_named(*symbols, name);
    return symbol ? symbol->address : 0;
  }
  TestDirectory dir;
  std::shared_ptr<object::ElfFile> file;
};

TEST_F(Program, InstructionsHaveTheirLines) {
  const uint64_t start = address_of("f");
  const auto range = function_at(*file, nullptr, start + 2);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->start, start);
  Diagnostics diagnostics;
  const auto code = code_of(file, nullptr, *range, symbolize::DemangleStyle::kFull, diagnostics);
  ASSERT_TRUE(code) << code.error().message;
  ASSERT_FALSE(code->empty());
  uint64_t next = start;
  for (const CodeLine& line : *code) {
    EXPECT_EQ(line.instruction.address, next);
    next += line.instruction.size;
  }
  EXPECT_EQ(next, range->end);
  EXPECT_TRUE(code->back().instruction.text.starts_with("ret")) << code->back().instruction.text;
  EXPECT_TRUE(std::ranges::any_of(*code, [](const CodeLine& l) { return l.places.size() == 2 && l.places[0].function == "twice" && l.places[1].line == 5; }));
  EXPECT_TRUE(std::ranges::any_of(*code, [](const CodeLine& l) { return !l.places.empty() && l.places[0].line == 4; }));
}

TEST_F(Program, RangesThatAreNone) {
  EXPECT_FALSE(disassemble(*file, 100, 100));
  EXPECT_FALSE(disassemble(*file, 0, uint64_t{1} << 40));
  EXPECT_FALSE(disassemble(*file, uint64_t{1} << 40, (uint64_t{1} << 40) + 16));
  EXPECT_FALSE(function_at(*file, nullptr, uint64_t{1} << 40));
}

TEST_F(Program, OnlyTheBuildThatRan) {
  const std::string id = object::to_hex(file->build_id());
  ASSERT_FALSE(id.empty());
  EXPECT_TRUE(open_binary({dir.path("p"), id, 0}));
  EXPECT_NE(open_binary({dir.path("p"), "0123", 0}).error().message.find("another build"), std::string::npos);
  EXPECT_FALSE(open_binary({dir.path("bare"), id, 0}));
  EXPECT_FALSE(open_binary({dir.path("gone"), id, 0}));
  EXPECT_FALSE(open_binary({"[vdso]", id, 0}));

  const timeval times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(utimes(dir.path("bare").c_str(), times), 0);
  EXPECT_FALSE(open_binary({dir.path("bare"), "", 0})) << "nothing tells what ran";
  EXPECT_TRUE(open_binary({dir.path("bare"), "", 2'000'000'000'000}));
  EXPECT_FALSE(open_binary({dir.path("bare"), "", 500'000'000'000})) << "it was built afterwards";
}

}  // namespace
}  // namespace cprof::source
