#include "unwind/cfi/table_compiler.h"

#include <gtest/gtest.h>

#include "unwind/cfi/cfi_bytes_for_tests.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::unwind {
namespace {

constexpr uint64_t kText = 0x1000, kTextEnd = 0x9000;

class Compile : public testing::Test {
 protected:
  Compile() : text_(kTextEnd - kText, std::byte{0xc3}) {
    input_.machine = &kX86_64Cfi;
    input_.text = {{kText, kTextEnd}};
    input_.read_text = [this](uint64_t svma, std::span<std::byte> into) {
      if (svma < kText || svma + into.size() > kTextEnd) return false;
      memcpy(into.data(), text_.data() + (svma - kText), into.size());
      return true;
    };
    cie_ = writer_.usual_cie();
  }

  void fde(uint64_t start, uint64_t size, const Bytes& instructions = {}) { writer_.fde(cie_, start, size, instructions); }
  void put(uint64_t svma, const Bytes& bytes) { memcpy(text_.data() + (svma - kText), bytes.get().data(), bytes.size()); }
  void compile(std::vector<CfiSource> more = {}) {
    ModuleInput input{input_, {writer_.source()}};
    for (CfiSource& source : more) input.sources.push_back(std::move(source));
    module_ = compile_module(std::move(input));
  }
  cp_rule at(uint64_t svma) const {
    const cp_rule* rule = cp_find_rule(&module_->table, svma);
    return rule ? *rule : cp_rule{};
  }
  void expect_sp(uint64_t svma, int offset) const {
    EXPECT_EQ(at(svma).cfa_kind, CP_CFA_SP) << std::hex << svma;
    EXPECT_EQ(at(svma).offset, offset) << std::hex << svma;
  }
  void expect_kind(uint64_t svma, cp_cfa_kind kind) const { EXPECT_EQ(at(svma).cfa_kind, kind) << std::hex << svma; }

  CompileInput input_;
  SectionWriter writer_{true};
  size_t cie_ = 0;
  std::vector<std::byte> text_;
  std::unique_ptr<ModuleTable::Impl> module_;
};

TEST_F(Compile, RowsReachOverPages) {
  fde(0x1ff0, 0x3020, {0x48, 0x0e, 16, 0x86, 2});  // pushes rbp at +8, then three pages without a change
  compile();
  expect_kind(0x1fef, CP_CFA_NONE);
  expect_sp(0x1ff7, 8);
  for (uint64_t pc : {0x1ff8, 0x2000, 0x3000, 0x3fff, 0x4abc, 0x500f}) {
    expect_sp(pc, 16);
    EXPECT_EQ(at(pc).fp_kind, CP_FP_AT_CFA);
    EXPECT_EQ(at(pc).fp_offset, -16);
  }
  expect_kind(0x5010, CP_CFA_NONE);
  expect_kind(kTextEnd, CP_CFA_NONE);
  expect_kind(~uint64_t{0}, CP_CFA_NONE);
  for (size_t page = 0; page + 1 < module_->rows.pages.size(); page++) {
    if (module_->rows.pages[page] == module_->rows.pages[page + 1]) continue;
    EXPECT_EQ(CP_ROW_PC(module_->rows.rows[module_->rows.pages[page]]), 0u);
  }
}

TEST_F(Compile, EqualNeighboursAreOneRow) {
  fde(0x1000, 0x100, {0x50, 0x0e, 16, 0x50, 0x2e, 8, 0x50, 0x0e, 16, 0x50, 0x0e, 8});
  fde(0x1100, 0x100);
  compile();
  EXPECT_EQ(module_->rows.rows.size(), 4u);  // 8, 16, 8 (both functions), nothing
  EXPECT_EQ(module_->rows.rules.size(), 3u);
}

TEST_F(Compile, UnsortedAndOverlappingFdes) {
  fde(0x3000, 0x100, {0x0e, 32});
  fde(0x1000, 0x1000, {0x0e, 16});      // long, overlapped by the next
  fde(0x1800, 0x100, {0x0e, 24});
  fde(0x1800, 0x200, {0x0e, 40});       // the same start: the first one holds
  fde(0x8f00, 0x5000, {0x0e, 48});      // reaches over the text's end
  fde(0x20000, 0x10);                   // not text
  compile();
  expect_sp(0x1000, 16);
  expect_sp(0x17ff, 16);
  expect_sp(0x1800, 24);
  expect_kind(0x1900, CP_CFA_NONE);
  expect_sp(0x3000, 32);
  expect_sp(0x8fff, 48);
  EXPECT_EQ(module_->stats.outside_text, 1u);
  for (size_t i = 1; i < module_->fdes.size(); i++)
    EXPECT_LE(module_->fdes[i - 1].start + module_->fdes[i - 1].size, module_->fdes[i].start);
}

TEST_F(Compile, DebugFrameFillsWhatEhFrameLeavesOpen) {
  fde(0x2000, 0x100, {0x0e, 16});
  SectionWriter debug(false);
  size_t cie = debug.usual_cie("");
  debug.fde(cie, 0x2080, 0x100, {0x0e, 24}, false);  // begins inside: not used
  debug.fde(cie, 0x1f00, 0x200, {0x0e, 32}, false);  // cut at 0x2000
  debug.fde(cie, 0, 0x100, {0x0e, 40}, false);       // a discarded function
  compile({debug.source()});
  expect_sp(0x1fff, 32);
  expect_sp(0x2000, 16);
  expect_sp(0x20ff, 16);
  expect_kind(0x2100, CP_CFA_NONE);
}

TEST_F(Compile, PaddingBelongsToTheFunctionBehindIt) {
  fde(0x1000, 0x13);
  fde(0x1020, 0x10, {0x0e, 16});
  put(0x1013, {0x0f, 0x1f, 0x80, 0, 0, 0, 0, 0x66, 0x90, 0x90, 0x90, 0x90, 0x90});
  fde(0x1100, 0x10, {0x0e, 24});                     // a large gap before: one byte only
  put(0x10ff, {0x90});
  fde(0x1200, 0x10, {0x0e, 32});                     // code before (0xc3): nothing
  fde(0x1210, 0x10, {0x0e, 40});                     // directly behind: a call may end the one before
  compile();
  expect_sp(0x101f, 16);
  expect_kind(0x10fe, CP_CFA_NONE);
  expect_sp(0x10ff, 24);
  expect_kind(0x11ff, CP_CFA_NONE);
  expect_sp(0x120f, 32);
}

TEST_F(Compile, StubsAndEntryCodeWithoutCfi) {
  input_.entry = 0x3010;
  input_.known_code = kX86_64Cfi.plt_code(0x2000, std::vector<std::byte>(0x40, std::byte{0x90}));
  fde(0x2020, 0x10, {0x0e, 64});                     // an FDE for part of .plt holds
  fde(0x3000, 0x10);
  compile();
  expect_sp(0x2000, 8);
  expect_sp(0x201f, 8);
  expect_sp(0x2028, 64);
  expect_sp(0x203f, 8);
  expect_kind(0x2040, CP_CFA_NONE);
  expect_kind(0x3010, CP_CFA_STOP);
  expect_kind(0x3040, CP_CFA_STOP);
  expect_kind(0x3500, CP_CFA_NONE);                  // a file without CFI has no endless entry code
}

// mold's first stub pushes two words, GNU ld's one by one; neither has CFI here. At each instruction what was pushed before it.
TEST_F(Compile, StubsThatPush) {
  const Bytes mold{0xf3, 0x0f, 0x1e, 0xfa,              // 2000 endbr64
                   0x41, 0x53,                          // 2004 push %r11
                   0xff, 0x35, 1, 2, 3, 4,              // 2006 push x(%rip)
                   0xff, 0x25, 1, 2, 3, 4,              // 200c jmp *x(%rip)
                   0xcc, 0xcc,                          // 2012
                   0xf3, 0x0f, 0x1e, 0xfa,              // 2014 the first function's
                   0x41, 0xbb, 0, 0, 0, 0,              // 2018
                   0xff, 0x25, 1, 2, 3, 4};             // 201e
  const Bytes gnu{0xff, 0x35, 1, 2, 3, 4,               // 2100 push
                  0xff, 0x25, 1, 2, 3, 4,               // 2106 jmp
                  0x0f, 0x1f, 0x40, 0x00,               // 210c
                  0xff, 0x25, 1, 2, 3, 4,               // 2110 jmp *x(%rip)
                  0x68, 0, 0, 0, 0,                     // 2116 push $0
                  0xe9, 0, 0, 0, 0,                     // 211b jmp
                  0x68, 1, 0, 0, 0,                     // 2120 push $1
                  0x06, 0x06};                          // 2125 nobody knows
  input_.known_code = kX86_64Cfi.plt_code(0x2000, mold.get());
  for (const KnownCode& known : kX86_64Cfi.plt_code(0x2100, gnu.get())) input_.known_code.push_back(known);
  fde(0x3000, 0x10);
  compile();
  for (auto [pc, bytes] : {std::pair{0x2000, 8}, {0x2004, 8}, {0x2006, 16}, {0x200c, 24}, {0x2012, 8}, {0x2014, 8}, {0x2018, 8},
                           {0x201e, 8}, {0x2100, 8}, {0x2106, 16}, {0x210c, 8}, {0x2110, 8}, {0x2116, 8}, {0x211b, 16},
                           {0x2120, 8}, {0x2125, 8}, {0x2126, 8}})
    expect_sp(static_cast<uint64_t>(pc), bytes);
  EXPECT_TRUE(kX86_64Cfi.plt_code(0x2000, {}).empty());
}

TEST_F(Compile, EntryCodeWithAnFdeIsLeftAlone) {
  input_.entry = 0x3000;
  fde(0x3000, 0x10, {0x07, 16});
  compile();
  expect_kind(0x3000, CP_CFA_STOP);
  expect_kind(0x3010, CP_CFA_NONE);
}

TEST_F(Compile, SignalTrampolineWithoutCfi) {
  fde(0x3000, 0x10);
  put(0x3020, {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05});
  compile();
  expect_kind(0x301e, CP_CFA_NONE);
  expect_kind(0x301f, CP_CFA_SIGNAL);  // return addresses are looked up one lower
  expect_kind(0x3028, CP_CFA_SIGNAL);
  expect_kind(0x3029, CP_CFA_NONE);
}

TEST_F(Compile, InitCode) {
  Bytes init{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x90, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  input_.known_code = kX86_64Cfi.init_code(0x1000, init.get());
  compile();
  expect_sp(0x1000, 8);
  expect_sp(0x1007, 8);
  expect_sp(0x1008, 16);
  expect_sp(0x100c, 16);
  expect_sp(0x100d, 8);
  EXPECT_TRUE(kX86_64Cfi.init_code(0x1000, Bytes{0x55, 0xc3}.get()).empty());
  EXPECT_TRUE(kX86_64Cfi.init_code(0x1000, {}).empty());
}

TEST_F(Compile, BrokenCfiIsBadAndNeverTheRoot) {
  fde(0x1000, 0x100, {0x50, 0x0e, 16, 0x50, 0x3f, 0x50, 0x07, 16});
  compile();
  expect_sp(0x1000, 8);
  expect_sp(0x1010, 16);
  expect_kind(0x1020, CP_CFA_BAD);
  expect_kind(0x10ff, CP_CFA_BAD);
  EXPECT_EQ(module_->stats.broken_programs, 1u);
}

TEST_F(Compile, Classifies) {
  struct Case {
    Bytes code;
    cp_cfa_kind kind;
  } cases[] = {
      {{0x0c, 6, 16}, CP_CFA_FP},
      {{0x0c, 10, 0}, CP_CFA_REG},
      {{0x07, 16}, CP_CFA_STOP},
      {{0x09, 16, 5, 0x0e, 0}, CP_CFA_SP},                                     // vfork
      {{0x0f, 3, 0x76, 0x78, 0x06}, CP_CFA_DEREF_FP},
      {{0x0f, 3, 0x77, 0x08, 0x06}, CP_CFA_DEREF_SP},
      {{0x0f, 3, 0x73, 0x08, 0x06}, CP_CFA_COMPLEX},                           // *(rbx + 8)
      {{0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22}, CP_CFA_PLT},
      {{0x10, 6, 2, 0x76, 0}, CP_CFA_SP},                                      // realigned frame
      {{0x10, 6, 2, 0x77, 0}, CP_CFA_COMPLEX},
      {{0x16, 6, 2, 0x76, 0}, CP_CFA_COMPLEX},
      {{0x16, 7, 2, 0x77, 16}, CP_CFA_COMPLEX},                                // the caller's rsp is not the CFA
      {{0x08, 16}, CP_CFA_COMPLEX},
  };
  for (size_t i = 0; i < std::size(cases); i++) fde(0x2000 + i * 0x40, 0x40, cases[i].code);
  compile();
  for (size_t i = 0; i < std::size(cases); i++) {
    EXPECT_EQ(at(0x2000 + i * 0x40).cfa_kind, cases[i].kind) << i;
  }
  EXPECT_EQ(at(0x20c0).ra_kind, CP_RA_REGISTER);
  EXPECT_EQ(at(0x20c0).narrow.second, 5);
  EXPECT_EQ(at(0x21c0).offset, 10);
  EXPECT_EQ(at(0x2200).fp_kind, CP_FP_AT_FP);
}

TEST_F(Compile, AbsurdTextIsBounded) {
  input_.text = {{0, ~uint64_t{0}}, {0x5000, 0x4000}, {kText, kTextEnd}};
  fde(0x2000, 0x7000000000000000);
  compile();
  EXPECT_LE(module_->rows.pages.size(), (size_t{1} << 20) + 1);
  expect_sp(0x2000, 8);
  input_.text.clear();
  compile();
  expect_kind(0x2000, CP_CFA_NONE);
}

}  // namespace
}  // namespace cprof::unwind
