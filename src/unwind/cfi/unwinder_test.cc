// The walk over made-up modules, registers and memory: what ends a stack and with which reason, what a frame pointer may
// do, when registers beyond sp and rbp matter. x86-64 first, then aarch64.
#include "unwind/cfi/unwinder.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "unwind/cfi/cfi_bytes_for_tests.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::unwind {
namespace {

constexpr uint64_t kBias = 0x550000000000, kSp = 0x7ffd00001000, kJit = 0x7f0000000000;
constexpr uint64_t kLeaf = 0x1000, kMid = 0x1100, kMain = 0x1200, kStart = 0x1300, kNoCfi = 0x3000;

class Snapshot final : public Memory {
 public:
  Read read_u64(uint64_t address, uint64_t& value) override {
    if (address < kSp) return Read::kUnreadable;
    if (address + 8 > kSp + size) return Read::kBeyondSnapshot;
    value = words.contains(address) ? words[address] : 0xdead0000dead;
    return Read::kOk;
  }
  uint64_t size = 0x1000;
  std::map<uint64_t, uint64_t> words;
};

class Modules final : public ModuleProvider {
 public:
  std::optional<Module> find(uint64_t pc) override {
    finds++;
    for (const Module& module : modules)
      if (pc >= module.start && pc < module.end) return module;
    return std::nullopt;
  }
  uint64_t generation() const override { return current; }
  uint64_t process_key() const override { return process; }
  bool follows_call(uint64_t pc) override { return calls.contains(pc); }
  std::optional<uint64_t> code_at(uint64_t pc) override {
    const auto found = code.find(pc);
    return found == code.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<Module> modules;
  std::set<uint64_t> calls;
  std::map<uint64_t, uint64_t> code;
  uint64_t current = 0, process = 0, finds = 0;
};

class Unwind : public testing::Test {
 protected:
  explicit Unwind(Machine machine = Machine::kX86_64)
      : machine_(machine == Machine::kX86_64 ? kX86_64Cfi : kAarch64Cfi), unwinder_(machine) {}

  void function(uint64_t start, const Bytes& code) { writer_.fde(cie_, start, 0x100, code); }
  void build() {
    ModuleInput input;
    input.compile.machine = &machine_;
    input.compile.text = {{0x1000, 0x5000}};
    input.sources.push_back(writer_.source());
    table_ = ModuleTable::adopt(compile_module(std::move(input)));
    modules_.modules = {{kBias + 0x1000, kBias + 0x5000, kBias, table_.get()}, {kJit, kJit + 0x1000, 0, nullptr}};
  }
  void set(uint32_t n, uint64_t value) {
    registers_.value[n] = value;
    registers_.valid |= uint64_t{1} << n;
  }
  const Stack& unwind(size_t max_depth = 100) { return unwinder_.unwind(registers_, memory_, modules_, max_depth); }
  void expect(StopReason stop, std::initializer_list<uint64_t> pcs, size_t max_depth = 100) {
    const Stack& stack = unwind(max_depth);
    EXPECT_EQ(static_cast<int>(stack.stop), static_cast<int>(stop));
    std::vector<uint64_t> found;
    for (const Frame& frame : stack.frames) found.push_back(frame.pc);
    EXPECT_EQ(found, std::vector<uint64_t>(pcs));
  }
  uint64_t& word(uint64_t offset) { return memory_.words[kSp + offset]; }

  const MachineCfi& machine_;
  SectionWriter writer_{true};
  size_t cie_ = 0;
  std::shared_ptr<const ModuleTable> table_;
  RegisterSet registers_;
  Snapshot memory_;
  Modules modules_;
  SnapshotUnwinder unwinder_;
};

// leaf pushes nothing; mid has a 32-byte frame with rbp saved; main is rbp-based; start is the root.
class UnwindX86 : public Unwind {
 protected:
  UnwindX86() {
    cie_ = writer_.usual_cie();
    function(kLeaf, {});
    function(kMid, {0x0e, 32, 0x86, 2});
    function(kMain, {0x0c, 6, 16, 0x86, 2});
    function(kStart, {0x07, 16});
    build();
    set(16, kBias + kLeaf);
    set(7, kSp);
    set(6, 0x1234);
    word(0) = kBias + kMid + 5;
    word(8 + 16) = kSp + 0x100;             // mid's saved rbp: at its CFA (sp + 40) - 16
    word(8 + 24) = kBias + kMain + 5;
    word(0x100) = 0;
    word(0x108) = kBias + kStart + 5;
  }
};

TEST_F(UnwindX86, ReachesTheRoot) {
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5, kBias + kStart + 5});
  const Stack& stack = unwind();
  EXPECT_FALSE(stack.frames[0].is_return_address);
  EXPECT_EQ(stack.frames[0].origin, FrameOrigin::kRegisters);
  EXPECT_TRUE(stack.frames[3].is_return_address);
  EXPECT_EQ(stack.frames[3].origin, FrameOrigin::kCfi);
}

TEST_F(UnwindX86, MaxDepthKeepsTheLeafSide) {
  expect(StopReason::kMaxDepth, {kBias + kLeaf, kBias + kMid + 5}, 2);
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5, kBias + kStart + 5}, 4);
}

TEST_F(UnwindX86, EndsWithAReason) {
  word(0x108) = 0;
  expect(StopReason::kNullReturn, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5});
  word(0x108) = 3;  // argc behind ld.so's start code
  expect(StopReason::kNullReturn, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5});
  word(0x108) = 0x600000000000;
  expect(StopReason::kNoMapping, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5});
  memory_.size = 0x100;
  expect(StopReason::kTruncatedSnapshot, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5});
  word(8 + 16) = kSp - 0x100;  // main's rbp points below: its CFA does not grow
  expect(StopReason::kNoProgress, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5});
}

TEST_F(UnwindX86, SampledPcOutsideCodeIsKept) {
  set(16, 0);
  expect(StopReason::kNoMapping, {0});
  registers_.valid = 1 << 16;
  expect(StopReason::kUnsupportedAbi, {});
}

// mid ends by __builtin_eh_return, as _Unwind_Resume: rbp-based, the handler's data registers saved. main has the landing
// pad. The return address in mid's frame has been overwritten; the unwinder's copy of it lies among mid's locals.
class UnwindEhReturn : public Unwind {
 protected:
  static constexpr uint64_t kOverwritten = 0x600000000000, kPad = kBias + kMain + 0x40;

  UnwindEhReturn() {
    cie_ = writer_.usual_cie();
    function(kLeaf, {});
    function(kMid, {0x0c, 6, 16, 0x86, 2, 0x80, 4, 0x81, 3});
    function(kMain, {0x0e, 32});
    function(kStart, {0x07, 16});
    build();
    set(16, kBias + kLeaf);
    set(7, kSp);
    set(6, kSp + 0x80);
    word(0) = kBias + kMid + 5;
    word(0x38) = kBias + kMain + 0x60;
    word(0x40) = kBias + kMain + 5;
    word(0x88) = kOverwritten;
    word(0x90 + 24) = kBias + kStart + 5;
  }
};

TEST_F(UnwindEhReturn, TheReturnAddressIsFoundInTheFrame) {
  modules_.calls = {kBias + kMain + 5};
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + kMid + 5, kBias + kMain + 5, kBias + kStart + 5});
  EXPECT_TRUE(unwind().frames[2].is_return_address);
}

TEST_F(UnwindEhReturn, NothingIsGuessedWithoutACallAndARoot) {
  expect(StopReason::kNoMapping, {kBias + kLeaf, kBias + kMid + 5});
  modules_.calls = {kBias + kMain + 5};
  word(0x90 + 24) = kOverwritten;
  expect(StopReason::kNoMapping, {kBias + kLeaf, kBias + kMid + 5});
}

TEST_F(UnwindEhReturn, OtherFunctionsAreNotGuessedFor) {
  set(16, kBias + kMain);
  modules_.calls = {kBias + kMain + 5};
  word(24) = kOverwritten;
  word(8) = kBias + kMain + 5;
  expect(StopReason::kNoMapping, {kBias + kMain});
}

TEST_F(UnwindEhReturn, TheLandingPadIsFoundInTheLastInstructions) {
  set(16, kBias + kMid + 0x80);
  set(6, 0);
  set(2, kSp + 0x88);
  word(0x88) = kPad;
  std::initializer_list<uint64_t> pcs = {kBias + kMid + 0x80, kPad, kBias + kStart + 5};
  expect(StopReason::kUndefinedReturn, pcs);  // mov %rcx, %rsp
  set(7, kSp + 0x88);
  expect(StopReason::kUndefinedReturn, pcs);  // pop %rcx
  set(7, kSp + 0x90);
  set(2, kPad);
  expect(StopReason::kUndefinedReturn, pcs);  // jmp *%rcx
  EXPECT_FALSE(unwind().frames[1].is_return_address);
}

TEST_F(UnwindX86, ReturnAddressAtTheEndOfAFunctionBelongsToIt) {
  word(0) = kBias + kMain;  // mid's last instruction is a call; pc - 1 is still mid
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + kMain, kBias + kMain + 5, kBias + kStart + 5});
}

TEST_F(UnwindX86, CodeWithoutCfiUsesTheFramePointer) {
  set(16, kBias + kNoCfi);
  set(6, kSp + 0x100);
  word(0x100) = kSp + 0x200;
  word(0x108) = kJit + 8;
  word(0x200) = 0;
  word(0x208) = kBias + kStart + 5;
  expect(StopReason::kUndefinedReturn, {kBias + kNoCfi, kJit + 8, kBias + kStart + 5});
  EXPECT_EQ(unwind().frames[1].origin, FrameOrigin::kFramePointer);
  word(0x208) = 0;
  expect(StopReason::kNullReturn, {kBias + kNoCfi, kJit + 8});
}

// CPython's, whose interpreter is compiled without frame pointers.
TEST_F(UnwindX86, TrampolinesSayHowTheyReturn) {
  word(0) = kJit + 6;  // of leaf: sub $8,%rsp; call *%rcx; | add $8,%rsp; ret
  word(8) = 0x1111;
  word(16) = kBias + kMid + 5;
  word(24 + 16) = kSp + 0x100;
  word(24 + 24) = kBias + kMain + 5;
  modules_.code[kJit + 6] = 0x9090'90c3'08c4'8348;
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kJit + 6, kBias + kMid + 5, kBias + kMain + 5, kBias + kStart + 5});
  EXPECT_EQ(unwind().frames[2].origin, FrameOrigin::kCfi);
  word(16) = 0x4141414141414141;
  expect(StopReason::kNoUnwindInfo, {kBias + kLeaf, kJit + 6});
  modules_.code.clear();
  expect(StopReason::kNoUnwindInfo, {kBias + kLeaf, kJit + 6});
}

TEST_F(UnwindX86, EachInstructionOfATrampolineSaysHowItReturns) {
  const std::pair<uint64_t, uint64_t> instructions[] = {
      {0x8348'd1ff'08ec'8348, 0}, {0x90c3'08c4'8348'd1ff, 8}, {0x9090'90c3'08c4'8348, 8}, {0x9090'9090'9090'90c3, 0}};
  for (auto [code, room] : instructions) {
    set(16, kJit);
    modules_.code[kJit] = code;
    memory_.words.clear();
    word(room) = kBias + kMain + 5;
    set(6, kSp + 0x100);
    word(0x100) = 0;
    word(0x108) = kBias + kStart + 5;
    expect(StopReason::kUndefinedReturn, {kJit, kBias + kMain + 5, kBias + kStart + 5});
  }
}

TEST_F(UnwindX86, DoubtfulFramePointersAreNotFollowed) {
  set(16, kBias + kNoCfi);
  word(0x108) = kBias + kMid + 5;
  for (uint64_t fp : {kSp - 8, kSp + 0x101, kSp + (1 << 20), uint64_t{0}, ~uint64_t{7}}) {
    set(6, fp);
    expect(StopReason::kNoUnwindInfo, {kBias + kNoCfi});
  }
  set(6, kSp + 0x100);
  word(0x108) = 0x4141414141414141;
  expect(StopReason::kNoUnwindInfo, {kBias + kNoCfi});
  set(6, kSp + 0x8000);
  expect(StopReason::kTruncatedSnapshot, {kBias + kNoCfi});
}

TEST_F(UnwindX86, SavedRbpBelowSpIsStillInItsRegister) {
  function(0x1400, {0x86, 2});  // after pop %rbp: CFA = sp + 8, the slot at CFA - 16 lies below sp
  build();
  set(16, kBias + 0x1400);
  set(6, kSp + 0x100);
  word(0) = kBias + kMain + 5;
  expect(StopReason::kUndefinedReturn, {kBias + 0x1400, kBias + kMain + 5, kBias + kStart + 5});
}

TEST_F(UnwindX86, BrokenCfiIsNotTheRoot) {
  function(0x1400, {0x3f});
  build();
  set(16, kBias + 0x1400);
  expect(StopReason::kBadUnwindInfo, {kBias + 0x1400});
}

// The binder's CFA is rbx + 8; mid2 saved the rbx that the binder's frame needs, or leaves it alone.
TEST_F(UnwindX86, RegisterCfaBelowOtherFramesIsFoundByGoingBackToTheLeaf) {
  function(0x1400, {0x0c, 3, 8});             // CFA = rbx + 8
  function(0x1500, {0x0e, 32, 0x83, 2});      // saves rbx at CFA - 16
  build();
  set(16, kBias + 0x1500);
  set(3, 0xbad);
  word(16) = kSp + 0x200;                     // rbx as the binder had it
  word(24) = kBias + 0x1405;
  word(0x200) = kBias + kStart + 5;
  expect(StopReason::kUndefinedReturn, {kBias + 0x1500, kBias + 0x1405, kBias + kStart + 5});

  set(16, kBias + kLeaf);                     // leaf does not touch rbx
  set(3, kSp + 0x300);
  word(0) = kBias + 0x1405;
  word(0x300) = kBias + kStart + 5;
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + 0x1405, kBias + kStart + 5});

  registers_.valid &= ~uint64_t{1 << 3};
  expect(StopReason::kBadUnwindInfo, {kBias + kLeaf, kBias + 0x1405});
}

TEST_F(UnwindX86, CallerSavedRegistersAreGoneBehindACall) {
  function(0x1400, {0x0c, 0, 8});             // CFA = rax + 8
  build();
  set(0, kSp + 0x100);
  word(0) = kBias + 0x1405;
  expect(StopReason::kBadUnwindInfo, {kBias + kLeaf, kBias + 0x1405});
  set(16, kBias + 0x1405);                    // but the leaf has them
  word(0x100) = kBias + kStart + 5;
  expect(StopReason::kUndefinedReturn, {kBias + 0x1405, kBias + kStart + 5});
}

TEST_F(UnwindX86, ExpressionsThatRowsCannotHold) {
  function(0x1400, {0x0f, 6, 0x77, 8, 0x06, 0x06, 0x23, 8});  // CFA = **(sp + 8) + 8
  build();
  set(16, kBias + 0x1400);
  word(8) = kSp + 0x40;
  word(0x40) = kSp + 0x100;
  word(0x100) = kBias + kStart + 5;
  expect(StopReason::kUndefinedReturn, {kBias + 0x1400, kBias + kStart + 5});
  set(16, kBias + kLeaf);
  word(0) = kBias + 0x1405;
  word(16) = kSp + 0x40;
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + 0x1405, kBias + kStart + 5});
}

TEST_F(UnwindX86, RemembersPcsUntilTheGenerationChanges) {
  modules_.current = 1;
  unwind();
  uint64_t once = modules_.finds;
  EXPECT_GT(once, 0u);
  unwind();
  EXPECT_EQ(modules_.finds, once);
  modules_.modules.clear();
  modules_.current = 2;
  expect(StopReason::kNoMapping, {kBias + kLeaf});
  modules_.current = 1;
  modules_.process = 5;
  expect(StopReason::kNoMapping, {kBias + kLeaf});
  modules_.current = 0;
  expect(StopReason::kNoMapping, {kBias + kLeaf});
}

class UnwindAarch64 : public Unwind {
 protected:
  UnwindAarch64() : Unwind(Machine::kAarch64) {
    Bytes body{1};
    cie_ = writer_.cie(body.text("zR").uleb(4).sleb(-8).u8(30).uleb(1).u8(0).add({0x0c, 31, 0}));
    function(kLeaf, {});                                              // nothing saved: x30 holds the return address
    function(kMid, {0x0e, 32, 0x9d, 4, 0x9e, 3});                     // stp x29, x30, [sp, -32]!
    function(kMain, {0x0e, 48, 0x9e, 6});                             // str x30, [sp, -48]!
    function(kStart, {0x07, 30});
    build();
    set(32, kBias + kLeaf);
    set(31, kSp);
    set(30, kBias + kMid + 8);
    set(29, kSp + 0x500);
    word(0) = kSp + 0x60;                                             // mid's x29
    word(8) = (uint64_t{0x00b5} << 48) | (kBias + kMain + 8);         // signed
    word(32) = kBias + kStart + 8;
  }
};

TEST_F(UnwindAarch64, LinkRegisterSavedPairsAndSignedAddresses) {
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + kMid + 8, kBias + kMain + 8, kBias + kStart + 8});
}

TEST_F(UnwindAarch64, PacPrologueAndCfaFromX29) {
  function(0x1400, {0x2d, 0x0c, 29, 16, 0x9d, 2, 0x9e, 1});
  build();
  set(32, kBias + 0x1400);
  set(29, kSp + 0x80);
  word(0x80) = 0;
  word(0x88) = (uint64_t{0x7f3c} << 48) | (kBias + kStart + 8);
  expect(StopReason::kUndefinedReturn, {kBias + 0x1400, kBias + kStart + 8});
}

TEST_F(UnwindAarch64, EpilogueWithReloadedLinkRegister) {
  function(0x1400, {0x0e, 0, 0x9d, 4, 0x9e, 3});  // ldp x29, x30 done, CFA = sp: the slots lie below
  build();
  set(32, kBias + 0x1400);
  set(30, kBias + kStart + 8);
  expect(StopReason::kUndefinedReturn, {kBias + 0x1400, kBias + kStart + 8});
}

TEST_F(UnwindAarch64, CallerCannotKeepItsReturnAddressInX30) {
  set(30, kBias + kLeaf + 8);
  expect(StopReason::kNoProgress, {kBias + kLeaf, kBias + kLeaf + 8});
}

TEST_F(UnwindAarch64, SignalFrame) {
  Bytes body{1};
  size_t signal_cie = writer_.cie(body.text("zRS").uleb(4).sleb(-8).u8(30).uleb(1).u8(0).add({0x0c, 31, 0}));
  writer_.fde(signal_cie, 0x1400, 0x10, {});
  build();
  set(30, kBias + 0x1404);
  constexpr uint64_t kRegisters = 128 + 176 + 8;
  for (uint64_t n = 0; n < 33; n++) word(kRegisters + 8 * n) = n;
  word(kRegisters + 8 * 29) = kSp + 0x900;
  word(kRegisters + 8 * 30) = kBias + kStart + 8;
  word(kRegisters + 8 * 31) = kSp + 0x800;
  word(kRegisters + 8 * 32) = kBias + kLeaf;     // exact: the very first instruction of leaf
  expect(StopReason::kUndefinedReturn, {kBias + kLeaf, kBias + 0x1404, kBias + kLeaf, kBias + kStart + 8});
  EXPECT_EQ(unwind().frames[2].origin, FrameOrigin::kSignal);
  EXPECT_FALSE(unwind().frames[2].is_return_address);
}

TEST_F(UnwindAarch64, FramePointerChainWithoutCfi) {
  set(32, kBias + kNoCfi);
  set(29, kSp + 0x100);
  word(0x100) = 0;
  word(0x108) = kBias + kStart + 8;
  expect(StopReason::kUndefinedReturn, {kBias + kNoCfi, kBias + kStart + 8});
}

}  // namespace
}  // namespace cprof::unwind
