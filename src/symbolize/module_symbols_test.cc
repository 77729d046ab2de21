#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "symbolize/symbolizer.h"
#include "symbolize/test_program.h"

namespace cprof::symbolize {
namespace {

#define REQUIRE_PROGRAM(name) \
  if (!TestDirectory::has(name)) GTEST_SKIP() << name << " is not installed"

struct Looker {
  explicit Looker(std::shared_ptr<object::ElfFile> f, std::shared_ptr<object::ElfFile> debug = nullptr, bool inlines = true)
      : file(f ? f : debug), module(f, debug, demangler, inlines), symbols(file->symbols().value_or(std::vector<object::Symbol>())) {}

  const Symbolized& at(uint64_t svma) { return module.find(svma, diagnostics); }
  uint64_t address(std::string_view symbol) const {
    const object::Symbol* found = symbol_named(symbols, symbol);
    EXPECT_TRUE(found) << symbol;
    return found ? found->address : 0;
  }
  // The frames at the first address in the symbol whose innermost frame is `innermost`; innermost first, "name:line".
  std::string chain(std::string_view symbol, std::string_view innermost) {
    const object::Symbol* found = symbol_named(symbols, symbol);
    for (uint64_t a = found ? found->address : 0; found && a < found->address + found->size; a++) {
      const Symbolized& result = at(a);
      if (!result.lines.empty() && result.lines[0].name == innermost) return text(result);
    }
    return "(not found)";
  }
  static std::string text(const Symbolized& result) {
    std::string out;
    for (const SourceLine& line : result.lines) {
      out += (out.empty() ? "" : " < ") + std::string(line.name) + ":" + std::to_string(line.line);
    }
    return out;
  }

  Demangler demangler{DemangleStyle::kFull};
  Diagnostics diagnostics;
  std::shared_ptr<object::ElfFile> file;
  ModuleSymbols module;
  std::vector<object::Symbol> symbols;
};

// Lines matter: crash() is called at 3, start() at 6.
constexpr const char* kInlined =
    "struct Pair { int a, b; int sum() const { return a + b; } }; Pair pair; volatile int sink;\n"
    "inline __attribute__((always_inline)) void crash(int x) { sink = x; sink = x + 1; }\n"
    "inline __attribute__((always_inline)) void start(int x) { crash(x); }\n"
    "int main(int argc, char**) {\n"
    "  sink = 7;\n"
    "  start(argc);\n"
    "  return 0;\n"
    "}\n";

class DebugFormats : public testing::TestWithParam<const char*> {};

TEST_P(DebugFormats, InlinedFramesHaveTheLinesOfTheirCalls) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  directory.write("u.cc", "struct Other { long x[3]; }; Other others; int other(int x) { return x * 3 + others.x[0]; }\n");
  std::string command(GetParam());
  if (!directory.shell(command)) GTEST_SKIP() << "not supported here: " << command;
  Looker looker(directory.open("t"));
  EXPECT_EQ(looker.chain("main", "crash(int)"), "crash(int):2 < start(int):3 < main:6");
  EXPECT_TRUE(looker.module.has_line_info());
  EXPECT_TRUE(looker.diagnostics.entries().empty()) << looker.diagnostics.entries().begin()->second.example;
  const Symbolized& result = looker.at(looker.address("main"));
  ASSERT_FALSE(result.lines.empty());
  EXPECT_EQ(result.lines.back().start_line, 4u);
  EXPECT_TRUE(result.lines.back().file.ends_with("/t.cc")) << result.lines.back().file;
  EXPECT_TRUE(result.lines.back().file.starts_with("/")) << result.lines.back().file;
  EXPECT_EQ(result.function_start, looker.address("main"));
}

INSTANTIATE_TEST_SUITE_P(
    All, DebugFormats,
    testing::Values("g++ -O2 -gdwarf-2 t.cc -o t", "g++ -O2 -gdwarf-3 t.cc -o t", "g++ -O2 -gdwarf-4 t.cc -o t",
                    "g++ -O2 -gdwarf-5 t.cc -o t", "g++ -O2 -gdwarf-5 -gdwarf64 t.cc -o t",
                    "g++ -O2 -gdwarf-4 -gsplit-dwarf t.cc -o t", "g++ -O2 -gdwarf-5 -gsplit-dwarf t.cc -o t",
                    "g++ -O2 -gdwarf-4 -gsplit-dwarf -ffunction-sections t.cc -o t",
                    "g++ -O2 -gdwarf-5 -gsplit-dwarf -ffunction-sections t.cc -o t",
                    "g++ -O2 -gdwarf-4 -fdebug-types-section t.cc -o t", "g++ -O2 -gdwarf-5 -fdebug-types-section t.cc -o t",
                    "g++ -O2 -gdwarf-4 -fdebug-types-section -gsplit-dwarf t.cc -o t",
                    "g++ -O2 -gdwarf-5 -fdebug-types-section -gsplit-dwarf t.cc -o t",
                    "g++ -O2 -gdwarf-4 -gsplit-dwarf u.cc t.cc -o t && dwp -e t && rm *.dwo",
                    "g++ -O2 -gdwarf-4 -gsplit-dwarf -fdebug-types-section u.cc t.cc -o t && dwp -e t && rm *.dwo",
                    "clang++-19 -O2 -gdwarf-5 -gsplit-dwarf u.cc t.cc -o t && llvm-dwp-19 -e t -o t.dwp && rm *.dwo",
                    "clang++-19 -O2 -gdwarf-5 -gsplit-dwarf -fdebug-types-section u.cc t.cc -o t && llvm-dwp-19 -e t -o t.dwp && rm *.dwo",
                    "g++ -O2 -g t.cc -o t -Wl,--compress-debug-sections=zlib",
                    "g++ -O2 -g t.cc -o t && objcopy --compress-debug-sections=zlib-gnu t",
                    "g++ -O2 -g t.cc -o t && objcopy --compress-debug-sections=zstd t",
                    "g++ -O2 -gdwarf-5 t.cc -o t -static-pie", "g++ -O2 -g t.cc -o t -no-pie -fuse-ld=mold",
                    "g++ -O2 -g t.cc -o t -fuse-ld=lld", "g++ -O2 -g -flto t.cc -o t", "g++ -O2 -g t.cc -o t && dwz t",
                    "g++ -O2 -g t.cc -o t && cp t u && dwz -m shared t u",
                    "clang++ -O2 -gdwarf-4 t.cc -o t || clang++-19 -O2 -gdwarf-4 t.cc -o t",
                    "clang++ -O2 -gdwarf-5 t.cc -o t || clang++-19 -O2 -gdwarf-5 t.cc -o t",
                    "clang++ -O2 -gdwarf-5 -gsplit-dwarf t.cc -o t || clang++-19 -O2 -gdwarf-5 -gsplit-dwarf t.cc -o t",
                    "clang++ -O2 -gdwarf-4 -gsplit-dwarf t.cc -o t || clang++-19 -O2 -gdwarf-4 -gsplit-dwarf t.cc -o t"));

TEST(ModuleSymbols, WithoutInlineFramesTheFunctionHasTheLineOfItsCall) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  ASSERT_TRUE(directory.shell("g++ -O2 -g t.cc -o t"));
  Looker plain(directory.open("t"), nullptr, false);
  bool call_seen = false;
  for (uint64_t a = plain.address("main"); a < plain.address("main") + 8; a++) {
    EXPECT_EQ(plain.at(a).lines.size(), 1u);
    call_seen |= Looker::text(plain.at(a)) == "main:6";
  }
  for (uint64_t a = plain.address("main"); !call_seen && a < plain.address("main") + 64; a++) {
    call_seen = Looker::text(plain.at(a)) == "main:6";
  }
  EXPECT_TRUE(call_seen);
}

TEST(ModuleSymbols, SeparateDebugFile) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  ASSERT_TRUE(directory.shell("g++ -O2 -g t.cc -o t && objcopy --only-keep-debug t t.debug && strip t -o s"));
  auto unstripped = directory.open("t");  // the names live in it
  auto symbols = unstripped->symbols();
  ASSERT_TRUE(symbols);
  Looker looker(directory.open("s"), directory.open("t.debug"));
  const Symbolized& result = looker.at(symbol_named(*symbols, "main")->address);
  ASSERT_FALSE(result.lines.empty());
  EXPECT_EQ(result.lines.back().name, "main");
  EXPECT_GT(result.lines.back().line, 0u);
}

TEST(ModuleSymbols, SizeRulesOfSymbols) {
  REQUIRE_PROGRAM("gcc");
  TestDirectory directory;
  directory.write("t.s",
                  ".text\n.globl first\nfirst: .skip 0x100, 0x90\n"
                  ".globl sized\n.type sized, @function\nsized: .skip 8, 0x90\nlabel: .skip 0x18, 0x90\n.size sized, 0x20\n"
                  ".skip 0xe0, 0x90\n"
                  ".type weak, @function\n.weak weak\nweak:\n.type twin, @function\n.globl twin\ntwin: .skip 16, 0x90\n"
                  ".size twin, 16\n.size weak, 16\n"
                  ".globl tail\ntail: .skip 16, 0x90\n"
                  ".section .note.GNU-stack,\"\",@progbits\n");
  ASSERT_TRUE(directory.shell("gcc -nostdlib -shared t.s -o t"));
  Looker looker(directory.open("t"));
  EXPECT_EQ(Looker::text(looker.at(looker.address("first") + 0x50)), "first:0");
  EXPECT_EQ(Looker::text(looker.at(looker.address("first") + 0xff)), "first:0");
  EXPECT_EQ(looker.at(looker.address("first") + 0x50).function_start, looker.address("first"));
  EXPECT_EQ(Looker::text(looker.at(looker.address("sized") + 0x10)), "sized:0");  // not "label"
  const Symbolized& none = looker.at(looker.address("sized") + 0x50);
  EXPECT_TRUE(none.lines.empty());
  EXPECT_EQ(none.miss, Miss::kNotInSymbol);
  EXPECT_EQ(Looker::text(looker.at(looker.address("twin"))), "twin:0");  // global before weak
  EXPECT_EQ(Looker::text(looker.at(looker.address("tail") + 15)), "tail:0");
  EXPECT_TRUE(looker.at(looker.address("tail") + 16).lines.empty());  // the section's end
}

TEST(ModuleSymbols, AStrippedStaticFunctionIsNotItsNeighbour) {
  REQUIRE_PROGRAM("gcc");
  TestDirectory directory;
  directory.write("t.c",
                  "extern int other(int); __attribute__((noinline)) static int hidden(int x) { return other(x) * 3 + other(1); }\n"
                  "int shown(int x) { return hidden(x) + 1; }\n");
  ASSERT_TRUE(directory.shell("gcc -O1 -fPIC -shared t.c -o t && strip t -o s"));
  auto unstripped = directory.open("t");  // the names live in it
  auto symbols = unstripped->symbols();
  ASSERT_TRUE(symbols);
  Looker looker(directory.open("s"));
  EXPECT_EQ(Looker::text(looker.at(symbol_named(*symbols, "shown")->address)), "shown:0");
  EXPECT_TRUE(looker.at(symbol_named(*symbols, "hidden")->address + 4).lines.empty());
}

TEST(ModuleSymbols, PltStubsAreNamedAfterTheirCallee) {
  REQUIRE_PROGRAM("gcc");
  TestDirectory directory;
  directory.write("t.c", "int other(int); int shown(int x) { return other(x) + 1; }\n");
  for (const char* flags : {"", "-Wl,-z,ibtplt", "-fcf-protection"}) {
    ASSERT_TRUE(directory.shell(std::string("gcc -O1 -fPIC -shared -Wl,-z,lazy t.c -o t ") + flags));
    Looker looker(directory.open("t"));
    bool seen = false;
    for (const object::Section& section : looker.file->sections()) {
      if (!section.name.starts_with(".plt")) continue;
      for (uint64_t a = section.vaddr; a < section.vaddr + section.size; a++) seen |= Looker::text(looker.at(a)) == "other@plt:0";
    }
    EXPECT_TRUE(seen) << flags;
  }
}

TEST(ModuleSymbols, ColdPartsHaveTheNameOfTheirFunction) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc",
                  "#include <cstdlib>\n#include <cstdio>\n#include <string>\n"
                  "struct Worker { std::string s; int work(int x); };\n"
                  "int Worker::work(int x) { std::string t = s; if (x > 100) { printf(\"%s\", t.c_str()); throw t; } return x + t.size(); }\n"
                  "namespace { __attribute__((noinline)) int hidden(int x) { std::string t(x, 'a'); if (x > 99) { printf(\"%s\", t.c_str()); throw t; } return x / 3; } }\n"
                  "int main(int c, char** v) { Worker w{v[0]}; if (c > 9) { puts(\"many\"); abort(); } return w.work(c) + hidden(c); }\n");
  ASSERT_TRUE(directory.shell("g++ -O2 -g t.cc -o t"));
  Looker looker(directory.open("t"));
  size_t cold = 0, hidden = 0;
  for (const object::Symbol& symbol : looker.symbols) {
    if (!symbol.name.ends_with(".cold")) continue;
    cold++;
    const Symbolized& result = looker.at(symbol.address);
    ASSERT_FALSE(result.lines.empty()) << symbol.name;
    bool is_hidden = symbol.name.find("hidden") != symbol.name.npos;
    std::string expected = symbol.name == "main.cold" ? "main" : is_hidden ? "(anonymous namespace)::hidden(int)" : "Worker::work(int)";
    EXPECT_EQ(result.lines.back().name, expected);
    hidden += is_hidden;
  }
  EXPECT_GE(cold, 2u);
  EXPECT_EQ(hidden, 1u);
}

TEST(ModuleSymbols, WithoutFilesOrSymbols) {
  Demangler demangler(DemangleStyle::kFull);
  Diagnostics diagnostics;
  ModuleSymbols none(nullptr, nullptr, demangler);
  EXPECT_EQ(none.find(0x1000, diagnostics).miss, Miss::kNoFile);
  EXPECT_FALSE(none.has_line_info());
}

TEST(ModuleSymbols, AMissingDwoFileLeavesNamesAndLines) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  ASSERT_TRUE(directory.shell("g++ -O2 -g -gsplit-dwarf t.cc -o t && rm -f *.dwo"));
  Looker looker(directory.open("t"));
  const Symbolized& result = looker.at(looker.address("main"));
  ASSERT_EQ(result.lines.size(), 1u);
  EXPECT_EQ(result.lines[0].name, "main");
  EXPECT_GT(result.lines[0].line, 0u);
  EXPECT_EQ(looker.diagnostics.count("dwo_missing"), 1u);
}

// GCC's strict DWARF 2 has no ranges, so a unit in two sections does not say where its code is; .debug_aranges does.
// An index that lies costs the inlined frames, nothing else.
TEST(ModuleSymbols, SpoiltPackagesNeverHurt) {
  REQUIRE_PROGRAM("dwp");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  ASSERT_TRUE(directory.shell("g++ -O2 -gdwarf-4 -gsplit-dwarf t.cc -o t && dwp -e t && rm *.dwo"));
  Fd fd = open_read(directory.path("t.dwp")).value_or(Fd());
  auto good = read_all(fd.get(), 1 << 20, "t.dwp");
  ASSERT_TRUE(good);
  std::mt19937 random(3);
  for (int round = 0; round < 300; round++) {
    std::string bytes(reinterpret_cast<const char*>(good->data()), good->size());
    for (unsigned n = 1 + random() % 6; n > 0; n--) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    directory.write("t.dwp", bytes);
    Looker looker(directory.open("t"));
    const Symbolized& result = looker.at(looker.address("main"));
    ASSERT_FALSE(result.lines.empty());
    EXPECT_GT(result.lines.back().line, 0u);
  }
}

TEST(ModuleSymbols, UnitsWithoutRangesAreFoundByTheAddressTable) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", std::string(kInlined) + "int work(int x) { return x * 3; }\n");
  ASSERT_TRUE(directory.shell("g++ -O2 -gdwarf-2 -gstrict-dwarf t.cc -o t"));
  Looker looker(directory.open("t"));
  EXPECT_EQ(Looker::text(looker.at(looker.address("_Z4worki"))), "work(int):9");
}

// A compressed section that claims a terabyte: said in one line, names from the symbol table, little memory.
TEST(ModuleSymbols, ALyingCompressedSectionIsRefused) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  ASSERT_TRUE(directory.shell("g++ -O2 -g t.cc -o t -Wl,--compress-debug-sections=zlib"));
  auto fd = open_read(directory.path("t"));
  ASSERT_TRUE(fd);
  auto bytes = read_all(fd->get(), 1 << 24, "t");
  ASSERT_TRUE(bytes);
  auto file = directory.open("t");
  const object::Section* info = file->find_section(".debug_info");
  ASSERT_TRUE(info && (info->flags & SHF_COMPRESSED));
  uint64_t terabyte = uint64_t{1} << 40;
  memcpy(bytes->data() + info->file_offset + offsetof(Elf64_Chdr, ch_size), &terabyte, sizeof terabyte);
  Looker looker(*object::ElfFile::from_memory(std::move(*bytes), "liar"));
  EXPECT_EQ(Looker::text(looker.at(looker.address("main"))), "main:0");
  EXPECT_EQ(looker.diagnostics.count("debug_section_unreadable"), 1u);
}

// Bytes of each debug section spoilt at random: names from the symbol table stay, and nothing reads outside.
TEST(ModuleSymbols, SpoiltDebugInfoNeverHurts) {
  REQUIRE_PROGRAM("g++");
  TestDirectory directory;
  directory.write("t.cc", kInlined);
  for (const char* version : {"-gdwarf-4", "-gdwarf-5"}) {
    ASSERT_TRUE(directory.shell(std::string("g++ -O2 t.cc -o t ") + version));
    auto fd = open_read(directory.path("t"));
    ASSERT_TRUE(fd);
    auto whole = read_all(fd->get(), 1 << 24, "t");
    ASSERT_TRUE(whole);
    auto file = directory.open("t");
    std::mt19937 random(11);
    for (int round = 0; round < 300; round++) {
      auto bytes = *whole;
      for (const object::Section& section : file->sections()) {
        if (!section.name.starts_with(".debug_") || section.size == 0) continue;
        for (int i = 0; i < 4; i++) bytes[section.file_offset + random() % section.size] = std::byte(random());
      }
      auto spoilt = object::ElfFile::from_memory(std::move(bytes), "spoilt");
      ASSERT_TRUE(spoilt);
      Looker looker(*spoilt);
      for (uint64_t a = 0; a < 48; a++) EXPECT_FALSE(looker.at(looker.address("main") + a).lines.empty() && a == 0);
    }
  }
}

}  // namespace
}  // namespace cprof::symbolize
