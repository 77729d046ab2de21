#include "cpustat/intervals.h"

#include <gtest/gtest.h>

#include "cpustat/counter_tracks.h"
#include "cpustat/proc_thread.h"
#include "profile/validate.h"

namespace cprof::cpustat {
namespace {

using profile::WaitClass;

constexpr uint64_t kMs = 1'000'000;

ThreadSums thread(int32_t pid, int32_t tid, uint64_t start_ns = 1) {
  ThreadSums sums;
  sums.pid = pid;
  sums.tid = tid;
  sums.start_ns = start_ns;
  sums.comm = "worker";
  return sums;
}

TEST(Intervals, ARowIsWhatWasAddedSinceTheReadingBefore) {
  Intervals intervals;
  ThreadSums sums = thread(10, 11);
  sums.cpu_ns = 500 * kMs;
  sums.user_ns = 300 * kMs;
  sums.voluntary = 7;
  intervals.begin(1000 * kMs, {sums});
  sums.cpu_ns += 100 * kMs;
  sums.user_ns += 30 * kMs;
  sums.system_ns += 10 * kMs;  // a quarter of the ticks
  sums.runnable_ns = 20 * kMs;
  sums.waits_ns[static_cast<size_t>(WaitClass::kFutex)] = 880 * kMs;
  sums.voluntary = 9;
  const Interval interval = intervals.next(2000 * kMs, {sums});
  EXPECT_EQ(interval.length_ns(), 1000 * kMs);
  ASSERT_EQ(interval.rows.size(), 1u);
  const Row& row = interval.rows[0];
  EXPECT_EQ(row.user_ns, 75 * kMs);
  EXPECT_EQ(row.kernel_ns, 25 * kMs);
  EXPECT_EQ(row.runnable_ns, 20 * kMs);
  EXPECT_EQ(row.wait_ns(WaitClass::kFutex), 880 * kMs);
  EXPECT_EQ(row.off_ns(), 880 * kMs);
  EXPECT_EQ(row.voluntary, 2u);
}

TEST(Intervals, WithoutATickTheShareBeforeHolds) {
  Intervals intervals;
  ThreadSums sums = thread(10, 10);
  intervals.begin(0, {sums});
  sums.cpu_ns = 10 * kMs;
  sums.system_ns = 4 * kMs;
  EXPECT_EQ(intervals.next(kMs, {sums}).rows[0].kernel_ns, 10 * kMs);
  sums.cpu_ns = 12 * kMs;
  EXPECT_EQ(intervals.next(2 * kMs, {sums}).rows[0].kernel_ns, 2 * kMs);
}

TEST(Intervals, WhatWasToldTooEarlyIsNotToldAgain) {
  Intervals intervals;
  ThreadSums sums = thread(10, 10);
  intervals.begin(0, {sums});
  sums.runnable_ns = 50 * kMs;
  intervals.next(kMs, {sums});
  sums.runnable_ns = 45 * kMs;
  EXPECT_EQ(intervals.next(2 * kMs, {sums}).rows[0].runnable_ns, 0u);
  sums.runnable_ns = 55 * kMs;
  EXPECT_EQ(intervals.next(3 * kMs, {sums}).rows[0].runnable_ns, 5 * kMs);
}

TEST(Intervals, AThreadThatAppearsCountsFromItsBeginning) {
  Intervals intervals;
  intervals.begin(0, {});
  ThreadSums sums = thread(10, 12);
  sums.cpu_ns = 3 * kMs;
  EXPECT_EQ(intervals.next(kMs, {sums}).rows[0].cpu_ns(), 3 * kMs);
}

TEST(Intervals, AReusedNumberIsAnotherThread) {
  Intervals intervals;
  ThreadSums sums = thread(10, 12, 100);
  sums.cpu_ns = 50 * kMs;
  intervals.begin(0, {sums});
  ThreadSums other = thread(10, 12, 200);
  other.cpu_ns = 2 * kMs;
  EXPECT_EQ(intervals.next(kMs, {other}).rows[0].cpu_ns(), 2 * kMs);
}

TEST(Intervals, OneThatEndedIsTheLastRowOfItsKind) {
  Intervals intervals;
  ThreadSums sums = thread(10, 12);
  intervals.begin(0, {sums});
  sums.has_ended = true;
  EXPECT_EQ(intervals.next(kMs, {sums}).rows.size(), 1u);
  EXPECT_EQ(intervals.next(2 * kMs, {sums}).rows.size(), 0u);
}

TEST(Intervals, ByProcessTheMainThreadGivesTheName) {
  std::vector<Row> rows(3);
  rows[0] = {.pid = 10, .tid = 10, .comm = "main", .user_ns = 1};
  rows[1] = {.pid = 10, .tid = 11, .comm = "helper", .has_ended = true, .user_ns = 2};
  rows[2] = {.pid = 20, .tid = 21, .comm = "other", .kernel_ns = 4};
  const std::vector<Row> processes = by_process(rows);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].comm, "main");
  EXPECT_EQ(processes[0].threads, 2u);
  EXPECT_EQ(processes[0].user_ns, 3u);
  EXPECT_FALSE(processes[0].has_ended);
  EXPECT_EQ(processes[1].comm, "other");
}

TEST(Totals, AddUpOverIntervals) {
  Totals totals;
  Interval interval{.start_ns = 0, .end_ns = 10, .rows = {{.pid = 1, .tid = 2, .comm = "a", .user_ns = 3}}};
  totals.add(interval);
  interval.start_ns = 10, interval.end_ns = 25;
  totals.add(interval);
  EXPECT_EQ(totals.length_ns(), 25u);
  ASSERT_EQ(totals.rows().size(), 1u);
  EXPECT_EQ(totals.rows()[0].user_ns, 6u);
}

TEST(CounterTracks, KeepChangesOnlyAndEndAtNothing) {
  CounterTracks tracks("x");
  Interval interval{.start_ns = 100, .end_ns = 200, .rows = {{.pid = 5, .tid = 6, .comm = "busy", .user_ns = 50}}};
  tracks.add(interval);
  interval.start_ns = 200, interval.end_ns = 300;
  tracks.add(interval);
  interval.start_ns = 300, interval.end_ns = 400;
  interval.rows[0].user_ns = 25;
  tracks.add(interval);
  const profile::Profile profile = tracks.take({});
  EXPECT_TRUE(profile::validate(profile).has_value());
  ASSERT_EQ(profile.tracks.size(), 1u);
  EXPECT_EQ(profile.text(profile.tracks[0].name), "user");
  EXPECT_EQ(profile.text(profile.tracks[0].unit), "%");
  EXPECT_EQ(profile.threads[profile.tracks[0].thread.index()].tid, 6);
  ASSERT_EQ(profile.counters.size(), 3u);
  EXPECT_EQ(profile.counters[0].time_ns, 100u);
  EXPECT_EQ(profile.counters[0].value, 50);
  EXPECT_EQ(profile.counters[1].time_ns, 300u);
  EXPECT_EQ(profile.counters[1].value, 25);
  EXPECT_EQ(profile.counters[2].time_ns, 400u);
  EXPECT_EQ(profile.counters[2].value, 0);
  EXPECT_EQ(profile.run.start_ns, 100u);
  EXPECT_EQ(profile.run.end_ns, 400u);
}

TEST(ProcStat, ANameMayHoldAnything) {
  const auto stat = parse_proc_stat("42 (a) b\n(c) S 1 42 42 0 -1 2129984 0 0 0 0 120 30 0 0 20 0 1 0 7000 0 0\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->comm, "a) b\n(c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent_pid, 1);
  EXPECT_TRUE(stat->is_kernel);
  EXPECT_EQ(stat->user_ticks, 120u);
  EXPECT_EQ(stat->system_ticks, 30u);
  EXPECT_EQ(stat->start_ns, 7000u * uint64_t{10'000'000});
}

TEST(ProcStat, WhatIsCutOffIsNone) {
  EXPECT_FALSE(parse_proc_stat("").has_value());
  EXPECT_FALSE(parse_proc_stat("42 (x").has_value());
  EXPECT_FALSE(parse_proc_stat("42 (x) S 1 42").has_value());
}

}  // namespace
}  // namespace cprof::cpustat
