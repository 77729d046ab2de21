// Stacks that are described once and named by an id, and samples that were counted before they came here.
#include "pipeline/stack_defs.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/file.h"
#include "object/elf_file.h"
#include "pipeline/pipeline.h"
#include "profile/validate.h"

namespace cprof::pipeline {
namespace {

using Chain = std::vector<uint64_t>;
constexpr uint64_t kBase = 0x50000;

event::SessionInfo two_metrics() {
  event::SessionInfo info;
  info.metrics = {{"page-faults", "count", 1, 2, 7, 0, false}, {"cpu-clock", "nanoseconds", 1, 0, 1'000'000, 0, true}};
  info.has_kernel_stacks = true;
  info.start_ns = 1;
  return info;
}

class Fed {
 public:
  explicit Fed(size_t max_depth = 1024) : pipeline_({.max_depth = max_depth, .symbolize = false}) {
    EXPECT_TRUE(pipeline_.begin(two_metrics()));
    for (int32_t pid : {7, 8}) {
      event::Mmap code{.task = {pid, pid}, .start = kBase, .length = 0x1000, .protection = PROT_READ | PROT_EXEC, .path = "//anon"};
      add(code);
    }
  }
  Fed& add(const event::Event& event) {
    EXPECT_TRUE(pipeline_.on_event(event));
    return *this;
  }
  Fed& define(int32_t pid, uint64_t id, const Chain& user, event::WalkEnd end = event::WalkEnd::kComplete,
              const Chain& kernel = {}) {
    return add(event::StackDef{.time_ns = 2, .task = {pid, 0}, .id = id, .kernel_chain = kernel, .user_chain = user, .user_end = end});
  }
  Fed& sample(int32_t pid, uint64_t time, uint64_t id) {
    return add(event::Sample{.time_ns = time, .task = {pid, pid}, .metric = 1, .period = 1'000'000, .stack_id = id});
  }
  Fed& count(event::Task task, uint64_t samples, uint64_t id, uint32_t metric = 1) {
    return add(event::Count{.time_ns = 50, .task = task, .metric = metric, .samples = samples, .weight = samples * 1000, .stack_id = id});
  }
  Fed& round(uint64_t time) {
    EXPECT_TRUE(pipeline_.on_round(time));
    return *this;
  }
  profile::Profile finish() {
    EXPECT_TRUE(pipeline_.finish(1000));
    profile::Profile profile = pipeline_.take();
    auto valid = profile::validate(profile);
    EXPECT_TRUE(valid) << valid.error().message;
    return profile;
  }

 private:
  Pipeline pipeline_;
};

// Root first: the address, and whether it is one that a call returns to.
using Frames = std::vector<std::pair<uint64_t, bool>>;
Frames frames_of(const profile::Profile& p, profile::CallSiteId site) {
  Frames frames;
  for (; site.valid(); site = p.sites[site.index()].parent) {
    const profile::Location& location = p.locations[p.sites[site.index()].location.index()];
    frames.insert(frames.begin(), {location.address, location.is_return_address});
  }
  return frames;
}

TEST(StackDefs, ASampleHasTheStackOfItsId) {
  auto p = Fed().define(7, 1, {kBase + 1, kBase + 2}, event::WalkEnd::kComplete, {0xffffffff81000010})
               .define(8, 1, {kBase + 9}, event::WalkEnd::kNoUnwindInfo)
               .sample(7, 10, 1).sample(8, 11, 1).finish();
  ASSERT_EQ(p.samples.size(), 2u);
  EXPECT_EQ(frames_of(p, p.samples[0].site), (Frames{{kBase + 2, true}, {kBase + 1, false}, {0xffffffff81000010, false}}));
  EXPECT_EQ(frames_of(p, p.samples[1].site), (Frames{{kBase + 9, false}})) << "ids belong to a process";
  EXPECT_EQ(p.samples[0].end, profile::StackEnd::kComplete);
  EXPECT_EQ(p.samples[1].end, profile::StackEnd::kNoUnwindInfo);
}

TEST(StackDefs, TheSameIdAgainReplacesIt) {
  auto p = Fed().define(7, 1, {kBase + 1}).sample(7, 10, 1).define(7, 1, {kBase + 2}).sample(7, 11, 1).finish();
  EXPECT_EQ(frames_of(p, p.samples[0].site), (Frames{{kBase + 1, false}}));
  EXPECT_EQ(frames_of(p, p.samples[1].site), (Frames{{kBase + 2, false}}));
}

TEST(StackDefs, AnIdThatWasNeverDescribedIsCountedAndItsSampleKept) {
  auto p = Fed().sample(7, 10, 5).finish();
  ASSERT_EQ(p.samples.size(), 1u);
  EXPECT_FALSE(p.samples[0].site.valid());
  EXPECT_EQ(p.diagnostics.count("stacks_undefined"), 1u);
}

TEST(StackDefs, EveryWalkEndHasItsStackEnd) {
  const std::pair<event::WalkEnd, profile::StackEnd> pairs[] = {
      {event::WalkEnd::kNoRegisters, profile::StackEnd::kNotUnwound},
      {event::WalkEnd::kMaxDepth, profile::StackEnd::kMaxDepth},
      {event::WalkEnd::kNoMapping, profile::StackEnd::kNoMapping},
      {event::WalkEnd::kBadUnwindInfo, profile::StackEnd::kBadUnwindInfo},
      {event::WalkEnd::kUnreadableMemory, profile::StackEnd::kUnreadableMemory},
      {event::WalkEnd::kNoProgress, profile::StackEnd::kNoProgress},
      {event::WalkEnd::kBadPc, profile::StackEnd::kBadPc},
      {event::WalkEnd::kExecInProgress, profile::StackEnd::kExecInProgress},
      {event::WalkEnd::kUnsupportedAbi, profile::StackEnd::kUnsupportedAbi}};
  Fed run;
  uint64_t id = 0;
  for (auto [walk, stack] : pairs) {
    id++;
    run.define(7, id, {kBase + id}, walk).sample(7, 10 + id, id);
  }
  auto p = run.finish();
  for (size_t i = 0; i < std::size(pairs); i++) EXPECT_EQ(p.samples[i].end, pairs[i].second) << i;
  EXPECT_FALSE(p.samples[7].site.valid()) << "inside execve the old image's stack is none";
}

TEST(StackDefs, AChainByFramePointersEndsWhereItLeavesTheCode) {
  auto p = Fed().define(7, 1, {kBase + 1, kBase + 2, 0x99990, kBase + 3}, event::WalkEnd::kUnknown)
               .define(7, 2, {}, event::WalkEnd::kUnknown).sample(7, 10, 1).sample(7, 11, 2).finish();
  EXPECT_EQ(frames_of(p, p.samples[0].site).size(), 2u);
  EXPECT_EQ(p.samples[0].end, profile::StackEnd::kBadPc);
  EXPECT_EQ(p.samples[1].end, profile::StackEnd::kNotUnwound);
}

TEST(StackDefs, DepthIsLimitedFromTheLeaf) {
  auto p = Fed(2).define(7, 1, {kBase + 1, kBase + 2, kBase + 3}).sample(7, 10, 1).finish();
  EXPECT_EQ(frames_of(p, p.samples[0].site), (Frames{{kBase + 2, true}, {kBase + 1, false}}));
  EXPECT_EQ(p.samples[0].end, profile::StackEnd::kMaxDepth);
}

// The C library's own trampoline, found by its bytes: mov $15 (rt_sigreturn), %rax; syscall.
TEST(StackDefs, TheFrameAboveASignalFrameIsExact) {
  constexpr const char* kLibc = "/lib/x86_64-linux-gnu/libc.so.6";
  auto fd = open_read(kLibc);
  if (!fd) GTEST_SKIP() << "needs " << kLibc;
  struct stat info;
  ASSERT_EQ(fstat(fd->get(), &info), 0);
  auto elf = object::ElfFile::open(std::move(*fd), kLibc);
  ASSERT_TRUE(elf);
  const object::Section* text = (*elf)->find_section(".text");
  auto code = (*elf)->section_data(*text);
  constexpr std::array<uint8_t, 9> kTrampoline = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  auto found = std::search(code->begin(), code->end(), kTrampoline.begin(), kTrampoline.end(),
                           [](std::byte a, uint8_t b) { return std::to_integer<uint8_t>(a) == b; });
  ASSERT_NE(found, code->end());
  uint64_t trampoline = text->vaddr + static_cast<uint64_t>(found - code->begin());

  const int32_t pid = getpid();
  const object::Segment* segment = nullptr;
  for (const object::Segment& s : (*elf)->segments())
    if (trampoline - s.vaddr < s.memory_size) segment = &s;
  constexpr uint64_t kBias = 0x7f0000000000;
  event::Mmap libc{.task = {pid, pid}, .start = kBias + segment->vaddr, .length = segment->memory_size, .file_offset = segment->file_offset,
                   .protection = PROT_READ | PROT_EXEC, .path = kLibc};
  libc.file = {major(info.st_dev), minor(info.st_dev), info.st_ino, 0};
  uint64_t here = kBias + trampoline, other = kBias + text->vaddr + 0x400;
  auto p = Fed().add(libc).define(pid, 1, {other, here, other + 8, other + 16}).define(pid, 2, {here + 9, other + 8, other + 16})
               .sample(pid, 10, 1).sample(pid, 11, 2).finish();
  auto bias = [&](profile::CallSiteId site) {
    Frames frames = frames_of(p, site);
    for (auto& frame : frames) frame.first -= text->vaddr;
    return frames;
  };
  uint64_t at = trampoline - text->vaddr;
  uint64_t shift = frames_of(p, p.samples[0].site).back().first - text->vaddr - 0x400;
  EXPECT_EQ(bias(p.samples[0].site),
            (Frames{{shift + 0x410, true}, {shift + 0x408, false}, {shift + at, false}, {shift + 0x400, false}}));
  EXPECT_EQ(bias(p.samples[1].site), (Frames{{shift + 0x410, true}, {shift + 0x408, false}, {shift + at + 9, false}}))
      << "a leaf behind the trampoline's last instruction";
}

TEST(StackDefs, AnEndedProcessKeepsItsOwnForAWhileAndAReusedPidHasNone) {
  Fed run;
  run.define(7, 1, {kBase + 1});
  run.add(event::Exit{20, {7, 7}}).count({7, 7}, 3, 1).round(9'000'000'000).count({7, 7}, 2, 1);
  run.add(event::Fork{9'000'000'001, {7, 7}, {1, 1}}).add(event::Sample{.time_ns = 9'000'000'002, .task = {7, 7}, .metric = 1, .stack_id = 1});
  auto p = run.finish();
  EXPECT_EQ(p.diagnostics.count("stacks_undefined"), 1u);
  int64_t known = 0;
  for (const auto& row : p.aggregates)
    if (row.site.valid() && p.text(p.metrics[row.metric.index()].name) == "samples") known += row.value;
  EXPECT_EQ(known, 5);
}

TEST(StackDefs, MemoryIsFreedAndBounded) {
  Diagnostics diagnostics;
  StackDefs defs(diagnostics, 10);
  space::Process a, b;
  a.serial = 1, b.serial = 2;
  for (uint64_t id = 1; id <= 8; id++) defs.define(a, id, {profile::CallSiteId(id), profile::StackEnd::kComplete}, 0);
  defs.define(a, 8, {profile::CallSiteId(size_t{80}), profile::StackEnd::kComplete}, 0);
  for (uint64_t id = 1; id <= 8; id++) defs.define(b, id, {profile::CallSiteId(id), profile::StackEnd::kComplete}, 0);
  EXPECT_EQ(defs.size(), 10u);
  EXPECT_EQ(diagnostics.count("stack_definitions_dropped"), 6u);
  EXPECT_EQ(defs.find(a, 8).site, profile::CallSiteId(size_t{80}));
  defs.process_ended(a, 100);
  defs.forget_ended(200);
  EXPECT_EQ(defs.size(), 10u) << "not yet";
  defs.forget_ended(20'000'000'000);
  EXPECT_EQ(defs.size(), 2u);
  EXPECT_FALSE(defs.find(a, 8).site.valid());
  EXPECT_TRUE(defs.find(b, 1).site.valid());
}

TEST(StackDefs, WhatIsNotRepeatedIsForgotten) {
  Diagnostics diagnostics;
  StackDefs defs(diagnostics);
  space::Process process;
  for (uint64_t id : {1, 2}) defs.define(process, id, {profile::CallSiteId(id), profile::StackEnd::kComplete}, 100);
  defs.define(process, 2, {profile::CallSiteId(size_t{2}), profile::StackEnd::kComplete}, 200);
  defs.forget_defined_before(200);
  EXPECT_EQ(defs.size(), 1u);
  EXPECT_FALSE(defs.find(process, 1).site.valid());
  EXPECT_TRUE(defs.find(process, 2).site.valid());
}

TEST(StackDefs, CountsOfADeadProcessAreItsOwnWhenItsPidIsTaken) {
  Fed fed;
  fed.define(7, 1, {kBase + 1}).add(event::Exit{.time_ns = 10, .task = {7, 7}});
  fed.add(event::Fork{.time_ns = 20, .child = {7, 7}, .parent = {8, 8}}).define(7, 2, {kBase + 2});
  fed.count({7, 7}, 3, 1).count({7, 7}, 5, 2);
  profile::Profile p = fed.finish();
  EXPECT_EQ(p.diagnostics.count("stacks_undefined"), 0u);
  std::map<uint32_t, int64_t> samples_of;  // by process row
  for (const auto& row : p.aggregates)
    if (p.text(p.metrics[row.metric.index()].name) == "samples")
      samples_of[static_cast<uint32_t>(p.threads[row.thread.index()].process.index())] += row.value;
  std::vector<int64_t> counts;
  for (const auto& [process, count] : samples_of) counts.push_back(count);
  std::ranges::sort(counts);
  EXPECT_EQ(counts, (std::vector<int64_t>{3, 5}));
}

struct Totals {
  int64_t samples = 0, cpu = 0, faults = 0;
};
Totals totals(const profile::Profile& p) {
  Totals sum;
  for (const auto& row : p.aggregates) {
    std::string_view name = p.text(p.metrics[row.metric.index()].name);
    (name == "samples" ? sum.samples : name == "cpu-clock" ? sum.cpu : sum.faults) += row.value;
  }
  return sum;
}

TEST(Counts, BecomeUntimedValuesByThread) {
  auto p = Fed().add(event::Comm{2, {7, 7}, "app"}).add(event::Fork{3, {7, 71}, {7, 7}}).define(7, 1, {kBase + 1})
               .count({7, 7}, 3, 1).count({7, 7}, 4, 1).count({7, 71}, 5, 1).count({7, 7}, 6, 1, 0).count({7, 7}, 1, 0).finish();
  EXPECT_FALSE(p.timed());
  Totals sum = totals(p);
  EXPECT_EQ(sum.samples, 13) << "of CPU time, where there are several metrics";
  EXPECT_EQ(sum.cpu, 13'000);
  EXPECT_EQ(sum.faults, 6'000);
  EXPECT_EQ(p.threads.size(), 2u);
  EXPECT_EQ(p.text(p.processes[0].name), "app");
  for (const auto& row : p.aggregates) {
    EXPECT_TRUE(row.thread.valid());
    EXPECT_EQ(row.end, row.site.valid() ? profile::StackEnd::kComplete : profile::StackEnd::kNotUnwound);
  }
}

TEST(Counts, SamplesOfACountedRunAreCountedToo) {
  auto p = Fed().define(7, 1, {kBase + 1}).sample(7, 10, 1).count({7, 7}, 3, 1).sample(7, 60, 1).finish();
  EXPECT_TRUE(p.samples.empty());
  EXPECT_EQ(totals(p).samples, 5);
  EXPECT_EQ(totals(p).cpu, 3'000 + 2 * 1'000'000);
}

TEST(Counts, OfAnUndescribedEventAreCounted) {
  auto p = Fed().count({7, 7}, 3, 0, 9).finish();
  EXPECT_TRUE(p.aggregates.empty());
  EXPECT_EQ(p.diagnostics.count("samples_of_unknown_event"), 1u);
}

}  // namespace
}  // namespace cprof::pipeline
