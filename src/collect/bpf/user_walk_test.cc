// The walk of the BPF programs as plain C, on this very process, against the snapshot unwinder on the same registers.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "collect/bpf/fake_maps_for_tests.h"
#include "collect/bpf/table_store.h"
#include "unwind/cfi/module_table_impl.h"
#include "unwind/cfi/own_process_for_tests.h"

#if defined(__x86_64__)

namespace cprof::collect {
namespace {

struct Outcome {
  std::vector<uint64_t> frames;
  uint32_t end = 0;
  bool wants_snapshot = false;
};

// This process's modules in fake maps.
class OwnMaps {
 public:
  OwnMaps() {
    std::ifstream maps_file("/proc/self/maps");
    for (std::string line; std::getline(maps_file, line);) {
      if (line.find(" r-xp ") == std::string::npos && line.find(" --xp ") == std::string::npos) continue;
      auto module = provider.find(std::stoull(line, nullptr, 16));
      if (module) add(*module);
    }
  }
  void add(const unwind::Module& module) {
    uint32_t number = 0;
    if (module.table) {
      const cp_table& table = module.table->impl().table;
      number = ++modules_;
      sampler_module made = store.add(table).value();
      made.base = table.base;
      made.state = SAMPLER_MODULE_READY;
      maps.modules()[number] = made;
    }
    maps.mappings()[count++] = {module.start, module.end, module.bias, number, 0};
  }

  unwind::OwnModules provider;
  FakeMaps maps;
  Diagnostics diagnostics;
  TableStore store{maps, diagnostics};
  uint32_t count = 0;

 private:
  uint32_t modules_ = 0;
};

OwnMaps& own_maps() {
  static OwnMaps* maps = new OwnMaps;
  walked_maps = &maps->maps;
  return *maps;
}

walk_memory g_memory;
uint64_t g_owner = 1;
bool g_tells_mappings = true;

uint64_t g_frames[SAMPLER_MAX_DEPTH];

user_walk walk_at(const unwind::RegisterSet& registers, uint32_t max_depth) {
  OwnMaps& maps = own_maps();
  g_memory.window_bytes = 0;
  user_walk walk{};
  walk.owner = g_owner;
  walk.count = g_tells_mappings ? maps.count : 0;
  walk.max_depth = max_depth;
  walk.exact = walk.registers_known = 1;
  for (int n = 0; n < SAMPLER_REGISTERS; n++) walk.registers[n] = registers.value[n];
  walk.pc = registers.value[16];
  walk.sp = registers.value[7];
  walk.fp = registers.value[6];
  return walk;
}

Outcome go_on(user_walk& walk) {
  for (int step = 0; step <= SAMPLER_MAX_DEPTH && !walk_advance(&walk, g_frames, &g_memory); step++) {
  }
  return {{g_frames, g_frames + walk.depth}, walk.end, walk.wants_snapshot != 0};
}

Outcome walk_from(const unwind::RegisterSet& registers, uint32_t max_depth = SAMPLER_MAX_DEPTH) {
  user_walk walk = walk_at(registers, max_depth);
  return go_on(walk);
}

unwind::RegisterSet at(uint64_t pc, uint64_t sp = 0x1000, uint64_t fp = 0) {
  unwind::RegisterSet registers;
  registers.value[16] = pc;
  registers.value[7] = sp;
  registers.value[6] = fp;
  return registers;
}

struct Both {
  Outcome walked;
  std::vector<uint64_t> unwound;
  bool is_complete = false;
};
Both g_both;
uint32_t g_max_depth = SAMPLER_MAX_DEPTH;

#if defined(__clang__)
#define NESTED __attribute__((noinline))
#else
#define NESTED __attribute__((noinline, noclone, optimize("omit-frame-pointer")))
#endif
volatile int g_sink;

__attribute__((noinline)) void capture_both() {
  ucontext_t context;
  getcontext(&context);
  unwind::RegisterSet registers = unwind::registers_of(context);
  g_both.walked = walk_from(registers, g_max_depth);
  unwind::OwnMemory memory;
  unwind::SnapshotUnwinder unwinder(unwind::Machine::kX86_64);
  const unwind::Stack& stack = unwinder.unwind(registers, memory, own_maps().provider, g_max_depth);
  g_both.unwound.clear();
  for (const unwind::Frame& frame : stack.frames) g_both.unwound.push_back(frame.pc);
  g_both.is_complete = stack.is_complete();
}

NESTED void aligned(int n) {
  alignas(64) volatile char block[128];
  block[n & 127] = 1;
  char* more = static_cast<char*>(__builtin_alloca(static_cast<size_t>(n) * 16 + 8));
  more[0] = block[n & 127];
  capture_both();
  g_sink = g_sink + more[0] + block[0];
}
NESTED void recurse(int depth) {
  if (depth == 0)
    aligned(5);
  else
    recurse(depth - 1);
  g_sink = g_sink + depth;
}
int compare(const void* a, const void* b) {
  if (g_sink % 7 == 0) recurse(2);
  g_sink = g_sink + 1;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void expect_equal() {
  EXPECT_EQ(g_both.walked.frames, g_both.unwound);
  EXPECT_EQ(g_both.walked.end == SAMPLER_END_COMPLETE, g_both.is_complete);
}

TEST(UserWalk, SameFramesAsTheSnapshotUnwinder) {
  recurse(10);
  ASSERT_GT(g_both.unwound.size(), 15u);
  EXPECT_EQ(g_both.walked.end, SAMPLER_END_COMPLETE);
  expect_equal();
}

TEST(UserWalk, ThroughLibraryCallbacks) {
  int numbers[20];
  for (int i = 0; i < 20; i++) numbers[i] = (i * 7919) % 31;
  g_sink = 7;
  qsort(numbers, 20, sizeof(int), compare);
  expect_equal();
}

// Its caller is on top of the stack then, whatever the tables say of the place: here that of a function's middle.
TEST(UserWalk, FromWhereAFunctionIsLeft) {
  recurse(10);
  const Outcome whole = g_both.walked;
  ucontext_t context;
  getcontext(&context);
  user_walk here = walk_at(unwind::registers_of(context), SAMPLER_MAX_DEPTH);
  ASSERT_EQ(walk_advance(&here, g_frames, &g_memory), 0) << "to the caller of this function";
  const uint64_t returns_to = here.pc;
  unwind::RegisterSet leaving = at(whole.frames.front(), here.sp - 8, here.fp);
  const Outcome rest = go_on(here);
  user_walk walk = walk_at(leaving, SAMPLER_MAX_DEPTH);
  ASSERT_EQ(walk_leave(&walk, g_frames), 0);
  EXPECT_EQ(walk.pc, returns_to);
  const Outcome left = go_on(walk);
  EXPECT_EQ(left.end, SAMPLER_END_COMPLETE);
  ASSERT_EQ(left.frames.size(), rest.frames.size());
  EXPECT_EQ(left.frames.front(), whole.frames.front());
  EXPECT_TRUE(std::equal(left.frames.begin() + 1, left.frames.end(), rest.frames.begin() + 1));
}

TEST(UserWalk, WhereAFunctionIsLeftWithoutAReadableStack) {
  user_walk walk = walk_at(at(reinterpret_cast<uint64_t>(&aligned), 8), SAMPLER_MAX_DEPTH);
  EXPECT_EQ(walk_leave(&walk, g_frames), 1);
  EXPECT_EQ(walk.end, SAMPLER_END_UNREADABLE);
  EXPECT_EQ(walk.depth, 1u) << "the function itself is known";
}

#if !defined(__SANITIZE_THREAD__)  // which calls handlers its own way
void on_signal(int) { recurse(1); }

TEST(UserWalk, ThroughASignalFrame) {
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  signal(SIGUSR1, SIG_DFL);
  EXPECT_TRUE(g_both.is_complete);
  expect_equal();
}
#endif

// Return addresses whose rules were found before are not searched for again, in the same process with the same
// mappings.
TEST(UserWalk, KnownCallersAreNotSearchedForAgain) {
  auto searches_of = [](uint64_t owner) {
    g_owner = owner;
    chunks_looked_up = 0;
    recurse(20);
    expect_equal();
    return chunks_looked_up;
  };
  g_memory = {};
  const size_t first = searches_of(5);
  EXPECT_LT(searches_of(5), first / 2);
  EXPECT_EQ(searches_of(6), first) << "other mappings";
  EXPECT_GT(searches_of(0), first) << "nobody told what is mapped: each of the equal frames is searched for";
  g_owner = 1;
}

TEST(UserWalk, MappingsThatNobodyToldOfAreNotKept) {
  uint64_t pc = reinterpret_cast<uint64_t>(&aligned);
  const OwnMaps& maps = own_maps();
  for (uint32_t i = 0; i < maps.count; i++)
    if (walk_is_in(walk_mapping(i), pc)) learnable = *walk_mapping(i);
  g_tells_mappings = false;
  uint64_t stack[64] = {pc + 4, pc + 4, 0};
  g_memory = {};
  walk_from(at(pc, reinterpret_cast<uint64_t>(&stack[0])));
  for (const walk_known& known : g_memory.known) EXPECT_EQ(known.owner, 0u);
  g_tells_mappings = true;
  learnable = {};
}

TEST(UserWalk, ReadsNothingBehindTheStacksEnd) {
  constexpr size_t kBytes = 2 * WALK_PAGE;
  auto* pages =
      static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(mprotect(pages + WALK_PAGE, WALK_PAGE, PROT_NONE), 0);
  auto* end = reinterpret_cast<uint64_t*>(pages + WALK_PAGE);
  uint64_t pc = reinterpret_cast<uint64_t>(&aligned);
  end[-1] = 0;  // the return address of a function at its first instruction
  Outcome walked = walk_from(at(pc, reinterpret_cast<uint64_t>(end - 1)));
  EXPECT_EQ(walked.frames, std::vector<uint64_t>{pc});
  EXPECT_EQ(walked.end, SAMPLER_END_COMPLETE);
  munmap(pages, kBytes);
}

TEST(UserWalk, MaxDepthKeepsTheLeafSide) {
  g_max_depth = 32;
  recurse(100);
  EXPECT_EQ(g_both.walked.end, SAMPLER_END_MAX_DEPTH);
  EXPECT_EQ(g_both.walked.frames.size(), 32u);
  expect_equal();
  g_max_depth = SAMPLER_MAX_DEPTH;
  recurse(SAMPLER_MAX_DEPTH + 400);
  EXPECT_EQ(g_both.walked.end, SAMPLER_END_MAX_DEPTH);
  EXPECT_EQ(g_both.walked.frames.size(), size_t{SAMPLER_MAX_DEPTH});
}

TEST(UserWalk, UnknownMappingAsksForASnapshot) {
  Outcome walked = walk_from(at(0x123456000));
  EXPECT_EQ(walked.end, SAMPLER_END_NO_MAPPING);
  EXPECT_TRUE(walked.wants_snapshot);
  EXPECT_EQ(walked.frames, std::vector<uint64_t>{0x123456000});
  knows_unmapped = true;
  EXPECT_FALSE(walk_from(at(0x123456000)).wants_snapshot) << "known to be no code";
  knows_unmapped = false;
}

TEST(UserWalk, ModuleWithoutTableYetIsAskedFor) {
  learnable = {0x500000000, 0x500001000, 0x500000000, 4000, 0};
  wanted_modules.clear();
  Outcome walked = walk_from(at(0x500000010));
  EXPECT_EQ(wanted_modules, std::vector<uint32_t>{4000});
  EXPECT_TRUE(walked.wants_snapshot);
  own_maps().maps.modules()[4000].state = SAMPLER_MODULE_NO_TABLE;
  walked = walk_from(at(0x500000010));
  EXPECT_EQ(walked.end, SAMPLER_END_NO_UNWIND_INFO) << "the frame pointer is tried and is none";
  EXPECT_FALSE(walked.wants_snapshot);
  own_maps().maps.modules()[4000] = {};
  learnable = {};
}

TEST(UserWalk, MemoryWithoutFileGoesByTheFramePointer) {
  learnable = {0x500000000, 0x500001000, 0, 0, 0};
  uint64_t stack[8] = {0, 0, reinterpret_cast<uint64_t>(&stack[4]), 0x500000020, 0, 0, 0, 0};
  uint64_t sp = reinterpret_cast<uint64_t>(&stack[0]), fp = reinterpret_cast<uint64_t>(&stack[2]);
  Outcome walked = walk_from(at(0x500000010, sp, fp));
  EXPECT_EQ(walked.frames, (std::vector<uint64_t>{0x500000010, 0x500000020}));
  EXPECT_EQ(walked.end, SAMPLER_END_COMPLETE) << "the next return address is 0";
  stack[3] = 0x600000000;
  walked = walk_from(at(0x500000010, sp, fp));
  EXPECT_EQ(walked.frames.size(), 1u) << "a return address outside code is not believed";
  EXPECT_EQ(walk_from(at(0x500000010, sp, sp - 8)).end, SAMPLER_END_NO_UNWIND_INFO);
  EXPECT_EQ(walk_from(at(0x500000010, sp, fp + 4)).end, SAMPLER_END_NO_UNWIND_INFO);
  learnable.flags = SAMPLER_MAPPING_UNSURE;
  EXPECT_TRUE(walk_from(at(0x500000010, sp, fp)).wants_snapshot);
  learnable = {};
}

TEST(UserWalk, ThroughATrampolineWithoutAFramePointer) {
  constexpr uint8_t kTrampoline[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};  // sub; call *%rdi; add; ret
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(code, MAP_FAILED);
  void* entry = static_cast<char*>(code) + 64;  // what checks calls through pointers looks in front of it
  memcpy(entry, kTrampoline, sizeof kTrampoline);
  const auto start = reinterpret_cast<uint64_t>(code);
  learnable = {start, start + 4096, 0, 0, 0};
  reinterpret_cast<void (*)(void (*)())>(entry)(capture_both);
  learnable = {};
  munmap(code, 4096);
  EXPECT_EQ(g_both.walked.end, SAMPLER_END_COMPLETE);
  EXPECT_NE(std::ranges::find(g_both.walked.frames, start + 64 + 6), g_both.walked.frames.end());
}

TEST(UserWalk, UnreadableStackIsNotPassedOver) {
  uint64_t pc = reinterpret_cast<uint64_t>(&aligned);
  Outcome walked = walk_from(at(pc, 0x1000));
  EXPECT_EQ(walked.end, SAMPLER_END_UNREADABLE);
  EXPECT_EQ(walked.frames.size(), 1u);
}

}  // namespace
}  // namespace cprof::collect

#endif
