#include "pipeline/switch_tracker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profile/validate.h"

namespace cprof::pipeline {
namespace {

using profile::ThreadId;

constexpr uint64_t kMs = 1'000'000;

// Threads 10 and 11 of one process, known from the start of the run at 100 ms.
class Switches : public testing::Test {
 protected:
  void SetUp() override {
    b.profile().run.start_ns = kStart;
    b.add_thread(b.add_process(10, "p"), 10, "a");
    b.add_thread(profile::ProcessId(size_t{0}), 11, "b");
    begin(true);
  }
  void begin(bool off_cpu) {
    event::SessionInfo info;
    info.has_switches = true;
    info.has_off_cpu = off_cpu;
    tracker.begin(info);
  }
  static constexpr uint64_t kStart = 100 * kMs;

  SwitchedThread who(int32_t tid) const { return {tid, ThreadId(static_cast<size_t>(tid - 10)), kStart}; }
  void out(int32_t tid, uint64_t ms, bool preempted = false) {
    tracker.on_out(who(tid), {.time_ns = ms * kMs, .task = {10, tid}, .cpu = 3, .preempted = preempted}, std::nullopt);
  }
  void in(int32_t tid, uint64_t ms) { tracker.on_in(who(tid), {.time_ns = ms * kMs, .task = {10, tid}}); }
  void stack(int32_t tid, uint64_t period = 1, uint32_t site = 0) {
    for (size_t i = b.profile().sites.size(); i <= site; ++i) b.site({}, b.location({.address = i + 1, .file_address = i + 1}));
    tracker.on_stack(who(tid), {.site = profile::CallSiteId(site), .period = period});
  }
  void wake(int32_t tid, uint64_t ms, event::Task waker = {}) {
    tracker.on_wakeup({.time_ns = ms * kMs, .task = {-1, tid}, .waker = waker});
  }
  profile::Profile finish(uint64_t ms) {
    tracker.finish(ms * kMs);
    profile::Profile p = b.take();
    EXPECT_TRUE(profile::validate(p)) << profile::validate(p).error().message;
    return p;
  }
  static std::vector<std::string> lines(const profile::Profile& p) {
    std::vector<std::string> out;
    for (const auto& r : p.on_cpu) out.push_back(line(r.thread, "on", r.start_ns, r.end_ns));
    for (const auto& r : p.off_cpu) {
      std::string text = line(r.thread, "off", r.start_ns, r.end_ns);
      if (r.woken_ns) text += " woken " + std::to_string(r.woken_ns / kMs);
      out.push_back(text + (r.is_open ? " open" : ""));
    }
    return out;
  }
  static std::string line(ThreadId thread, const char* what, uint64_t start, uint64_t end) {
    return std::to_string(thread.value) + " " + what + " " + std::to_string(start / kMs) + "-" + std::to_string(end / kMs);
  }
  using Lines = std::vector<std::string>;

  profile::ProfileBuilder b;
  SwitchTracker tracker{b};
};

TEST_F(Switches, AWaitIsSplitWhereTheThreadWasWoken) {
  stack(10);
  out(10, 110);
  wake(10, 150, {10, 11});
  in(10, 160);
  out(10, 170, true);
  in(10, 180);
  out(11, 190);
  auto p = finish(200);
  EXPECT_EQ(lines(p), (Lines{"0 on 100-110", "0 on 160-170", "0 on 180-200", "1 on 100-190", "0 off 110-160 woken 150",
                             "0 off 170-180 woken 170", "1 off 190-200 open"}));
  EXPECT_FALSE(p.off_cpu[0].waker.valid()) << "thread 11 was not known yet";
}

TEST_F(Switches, OnAndOffAddUpToTheLife) {
  in(10, 100), in(11, 101);
  for (uint64_t t = 110; t < 190; t += 10) out(10, t), in(10, t + 3), out(11, t + 3, true), in(11, t + 5);
  auto p = finish(200);
  uint64_t sum[2] = {};
  for (const auto& r : p.on_cpu) sum[r.thread.index()] += r.end_ns - r.start_ns;
  for (const auto& r : p.off_cpu) sum[r.thread.index()] += r.end_ns - r.start_ns;
  EXPECT_EQ(sum[0], 100 * kMs);
  EXPECT_EQ(sum[1], 100 * kMs);
}

TEST_F(Switches, TheWakerIsAThreadOfTheProfileOrNobody) {
  in(11, 101);
  out(10, 110), wake(10, 120, {10, 11}), in(10, 121);
  out(10, 130), wake(10, 140, {77, 77}), in(10, 141);
  out(10, 150), wake(10, 160), in(10, 161);
  auto p = finish(200);
  ASSERT_GE(p.off_cpu.size(), 3u);
  EXPECT_EQ(p.off_cpu[0].waker, ThreadId(size_t{1}));
  EXPECT_FALSE(p.off_cpu[1].waker.valid());
  EXPECT_FALSE(p.off_cpu[2].waker.valid());
}

TEST_F(Switches, TheFirstWakingCounts) {
  out(10, 110), wake(10, 120), wake(10, 125), in(10, 130);
  EXPECT_EQ(lines(finish(140)).back(), "0 off 110-130 woken 120");
}

TEST_F(Switches, ASwitchInTellsItsWakingToo) {
  in(11, 101);
  out(10, 110);
  tracker.on_in(who(10), {.time_ns = 130 * kMs, .task = {10, 10}, .woken_ns = 120 * kMs, .waker = {10, 11}});
  auto p = finish(140);
  EXPECT_EQ(p.off_cpu[0].woken_ns, 120 * kMs);
  EXPECT_EQ(p.off_cpu[0].waker, ThreadId(size_t{1}));
}

TEST_F(Switches, AWakingJustBeforeTheThreadLeavesMeansThatWait) {
  in(10, 105);
  tracker.on_wakeup({.time_ns = 110 * kMs - 20'000, .task = {-1, 10}});
  out(10, 110), in(10, 112);
  tracker.on_wakeup({.time_ns = 120 * kMs - 20'000, .task = {-1, 10}});
  out(10, 120), wake(10, 125), in(10, 126);
  wake(10, 128);
  out(10, 130), in(10, 135);
  auto p = finish(140);
  ASSERT_EQ(p.off_cpu.size(), 4u);
  EXPECT_EQ(p.off_cpu[1].woken_ns, p.off_cpu[1].start_ns);
  EXPECT_EQ(p.off_cpu[2].woken_ns, 125 * kMs) << "a later waking is the right one";
  EXPECT_EQ(p.off_cpu[3].woken_ns, 0u) << "2 ms before is too long ago";
}

TEST_F(Switches, ClockThatWentBackMakesNoInterval) {
  in(10, 105);
  out(10, 110);
  in(10, 109);
  auto p = finish(200);
  EXPECT_EQ(p.diagnostics.count("clock_went_back"), 1u);
  for (const auto& off : p.off_cpu) EXPECT_LT(off.duration_ns(), 100 * kMs);
}

// WGT-04: where the thread comes back does not matter.
TEST_F(Switches, AThreadThatMovesBetweenCpusLosesNoInterval) {
  for (uint64_t i = 0; i < 20; ++i) {
    const uint64_t t = 200 + i * 101;
    tracker.on_out(who(10), {.time_ns = t * kMs, .task = {10, 10}, .cpu = static_cast<uint32_t>(i % 2)}, std::nullopt);
    tracker.on_in(who(10), {.time_ns = (t + 100) * kMs, .task = {10, 10}, .cpu = static_cast<uint32_t>(1 - i % 2)});
  }
  auto p = finish(3000);
  ASSERT_EQ(p.off_cpu.size(), 20u);
  uint64_t total = 0;
  for (const auto& off : p.off_cpu) {
    EXPECT_EQ(off.duration_ns(), 100 * kMs);
    total += off.duration_ns();
  }
  EXPECT_EQ(total, 2000 * kMs);
}

TEST_F(Switches, AMissingRecordLeavesTheTimeUnknown) {
  out(10, 110);
  out(10, 120);  // its return was lost
  in(10, 130);
  in(10, 140);   // its leaving was lost
  out(10, 150);
  auto p = finish(160);
  EXPECT_EQ(lines(p), (Lines{"0 on 100-110", "0 on 140-150", "0 off 120-130", "0 off 150-160 open"}));
  EXPECT_EQ(p.diagnostics.count("switches_unpaired"), 2u);
}

TEST_F(Switches, WaitsAcrossALossAreCounted) {
  out(10, 110);
  tracker.on_lost(115 * kMs);
  in(10, 120), out(10, 130), in(10, 140);
  EXPECT_EQ(finish(150).diagnostics.count("off_cpu_across_losses"), 1u);
}

TEST_F(Switches, ShortOnesAreDroppedAndCounted) {
  in(10, 105);
  for (uint64_t ns : {999, 1000}) {
    tracker.on_out(who(10), {.time_ns = 110 * kMs + ns * 10, .task = {10, 10}}, std::nullopt);
    tracker.on_in(who(10), {.time_ns = 110 * kMs + ns * 11, .task = {10, 10}});
  }
  auto p = finish(120);
  EXPECT_EQ(p.off_cpu.size(), 2u) << "the one before the recording, and the one of exactly 1 µs";
  EXPECT_EQ(p.diagnostics.count("off_cpu_short"), 1u);
}

TEST_F(Switches, ANewThreadIsRunnableUntilItRuns) {
  tracker.on_fork({.time_ns = 110 * kMs, .child = {10, 11}, .parent = {10, 10}});
  in(11, 115);
  tracker.on_exit({.time_ns = 120 * kMs, .task = {10, 11}});
  auto p = finish(200);
  EXPECT_EQ(lines(p)[0], "1 on 115-120");
  EXPECT_EQ(p.off_cpu[0].woken_ns, p.off_cpu[0].start_ns);
  EXPECT_EQ(p.off_cpu[0].duration_ns(), 5 * kMs);
}

TEST_F(Switches, AWaitThatExitEndsIsOpen) {
  out(10, 110);
  tracker.on_exit({.time_ns = 120 * kMs, .task = {10, 10}});
  auto p = finish(200);
  EXPECT_EQ(lines(p), (Lines{"0 on 100-110", "0 off 110-120 open"}));
}

TEST_F(Switches, AStackBelongsToTheNextSwitchOutOnly) {
  stack(10), in(10, 105);  // left over from a switch-out that was lost
  out(10, 110), in(10, 120);
  stack(10), out(10, 130), in(10, 140);
  out(10, 150), in(10, 160);
  auto p = finish(170);
  EXPECT_EQ(p.diagnostics.count("off_cpu_without_stack"), 2u);
  EXPECT_EQ(p.off_cpu.size(), 4u);
}

// Totals stay exact: a wait without a stack counts for the thread's last one of its kind.
TEST_F(Switches, WhereStacksAreThinnedALastOneStandsForOthers) {
  in(10, 101), in(11, 101);
  stack(10, 4, 5), out(10, 110), in(10, 112);
  stack(10, 4, 6), out(10, 120, true), in(10, 123);
  out(10, 130), in(10, 134);
  out(10, 140, true), in(10, 145);
  out(11, 150), in(11, 156);
  auto p = finish(160);
  std::vector<std::pair<uint32_t, bool>> sites;
  for (const auto& off : p.off_cpu)
    if (off.start_ns >= 110 * kMs) sites.emplace_back(off.site.value, off.is_borrowed);
  const uint32_t none = profile::CallSiteId().value;
  EXPECT_EQ(sites, (std::vector<std::pair<uint32_t, bool>>{{5, false}, {6, false}, {5, true}, {6, true}, {none, true}}));
  EXPECT_EQ(p.diagnostics.count("off_cpu_stacks_thinned"), 3u);
  EXPECT_EQ(p.diagnostics.count("off_cpu_without_stack"), 0u);
}

TEST_F(Switches, WithoutOffCpuOnlyTimeOnACpuIsKept) {
  begin(false);
  out(10, 110), in(10, 120);
  auto p = finish(130);
  EXPECT_EQ(lines(p), (Lines{"0 on 100-110", "0 on 120-130"}));
}

TEST_F(Switches, TheIdleTaskAndReapedOnesAreNobody) {
  tracker.on_out({0, ThreadId(size_t{0}), kStart}, {.time_ns = 110 * kMs}, std::nullopt);
  tracker.on_in({-1, ThreadId(size_t{0}), kStart}, {.time_ns = 120 * kMs});
  EXPECT_TRUE(lines(finish(130)).empty());
}

}  // namespace
}  // namespace cprof::pipeline
