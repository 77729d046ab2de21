#include "object/kernel_symbols.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "object/temporary_tree.h"

namespace cprof::object {
namespace {

constexpr std::string_view kText =
    "0000000000000000 A fixed_percpu_data\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T startup_64\n"
    "ffffffff81000040 t helper\n"
    "ffffffff81000080 W weak_one\n"
    "ffffffff810000a0 D some_data\n"
    "ffffffff810000c0 w weak_two\n"
    "ffffffffc0a01000 t nfs_open\t[nfs]\n"
    "ffffffffc0a00000 t nfs_init\t[nfs]\n"
    "ffffffffc0b00000 t bpf_prog_1234_x\t[bpf]\n";

std::string name_at(const KernelSymbols& symbols, uint64_t address) {
  auto symbol = symbols.find(address);
  if (!symbol) return "-";
  return symbol->module.empty() ? std::string(symbol->name) : fmt::format("{} [{}]", symbol->name, symbol->module);
}

TEST(KernelSymbols, NearestBelow) {
  auto symbols = KernelSymbols::parse(kText);
  EXPECT_FALSE(symbols.hidden());
  for (int pass = 0; pass < 2; ++pass) {  // the second comes from the cache
    EXPECT_EQ(name_at(symbols, 0xffffffff80ffffff), "-");
    EXPECT_EQ(name_at(symbols, 0xffffffff81000000), "startup_64");  // fewer underscores than _stext
    EXPECT_EQ(name_at(symbols, 0xffffffff8100003f), "startup_64");
    EXPECT_EQ(name_at(symbols, 0xffffffff81000041), "helper");
    EXPECT_EQ(name_at(symbols, 0xffffffff810000b0), "weak_one");  // data has no code
    EXPECT_EQ(name_at(symbols, 0xffffffffc0a00800), "nfs_init [nfs]");
    EXPECT_EQ(name_at(symbols, 0xffffffffc0a01010), "nfs_open [nfs]");
    EXPECT_EQ(name_at(symbols, 0), "-");
  }
  EXPECT_EQ(symbols.find(0xffffffff81000050)->start, 0xffffffff81000040u);
}

TEST(KernelSymbols, NothingCoversWhatLiesBetweenModules) {
  auto symbols = KernelSymbols::parse(kText);
  EXPECT_EQ(name_at(symbols, 0xffffffff810000c0 + 0xffff), "weak_two");
  EXPECT_EQ(name_at(symbols, 0xffffffff810000c0 + 0x10000), "-");  // behind the core kernel
  EXPECT_EQ(name_at(symbols, 0xffffffffc0a80000), "-");            // behind nfs
  EXPECT_FALSE(symbols.find(0xffffffffc0b00000)) << "whose code this was when it ran, nobody knows";
  ASSERT_EQ(symbols.generated().size(), 1u);
  EXPECT_EQ(symbols.generated()[0].name, "bpf_prog_1234_x");
  EXPECT_EQ(symbols.generated()[0].start, 0xffffffffc0b00000);
  EXPECT_EQ(symbols.generated()[0].end, 0xffffffffc0b10000);
  EXPECT_FALSE(is_generated({.name = "vfs_read", .module = ""}));
  EXPECT_FALSE(is_generated({.name = "nfs_read", .module = "nfs"}));
  EXPECT_EQ(name_at(symbols, 0xffffffffc0b10000), "-");  // above the last symbol
  EXPECT_EQ(name_at(symbols, ~uint64_t{0}), "-");
}

// On aarch64 modules lie below the kernel.
TEST(KernelSymbols, ModuleBelowTheKernelNeverCoversIt) {
  auto symbols = KernelSymbols::parse("ffff800000100000 t mod_fn\t[m]\nffff800008000000 T _text\n");
  EXPECT_EQ(name_at(symbols, 0xffff800000100010), "mod_fn [m]");
  EXPECT_EQ(name_at(symbols, 0xffff800007ffffff), "-");
  EXPECT_EQ(name_at(symbols, 0xffff800008000010), "_text");
}

// KRN-02
TEST(KernelSymbols, HiddenAddresses) {
  auto symbols = KernelSymbols::parse("0000000000000000 T _text\n0000000000000000 t f\n0000000000000000 t g\t[m]\n");
  EXPECT_TRUE(symbols.hidden());
  EXPECT_EQ(symbols.size(), 0u);
  EXPECT_EQ(name_at(symbols, 0xffffffff81000000), "-");
  EXPECT_FALSE(KernelSymbols::parse("").hidden());
}

TEST(KernelSymbols, MalformedLinesAreCounted) {
  auto symbols = KernelSymbols::parse(
      "\nxyz\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n"
      "11ffffffff81000000 T long\nffffffff81000000 T bad\t[open\nffffffff81000010 T good");
  EXPECT_EQ(symbols.malformed_lines(), 7u);
  EXPECT_EQ(name_at(symbols, 0xffffffff81000011), "good");
}

TEST(KernelSymbols, LoadsAFileAndSurvivesMoves) {
  TemporaryTree tree;
  auto loaded = KernelSymbols::load(tree.write("kallsyms", kText));
  ASSERT_TRUE(loaded);
  KernelSymbols moved = std::move(*loaded);
  EXPECT_EQ(name_at(moved, 0xffffffffc0a00800), "nfs_init [nfs]");
  EXPECT_FALSE(KernelSymbols::load(tree / "absent"));
}

TEST(KernelSymbols, ManyLines) {
  std::string text;
  for (uint64_t i = 0; i < 200'000; ++i)
    text += fmt::format("{:016x} t some_kernel_function_{}{}\n", 0xffffffff81000000 + i * 64, i, i > 150'000 ? "\t[mod]" : "");
  auto symbols = KernelSymbols::parse(text);
  EXPECT_EQ(symbols.size(), 200'000u);
  EXPECT_EQ(name_at(symbols, 0xffffffff81000000 + 77'777 * 64 + 5), "some_kernel_function_77777");
  EXPECT_EQ(name_at(symbols, 0xffffffff81000000 + 177'777 * 64 + 5), "some_kernel_function_177777 [mod]");
}

}  // namespace
}  // namespace cprof::object
