#include "timeline/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "profile/builder.h"

namespace cprof::timeline {
namespace {

using namespace profile;

constexpr uint64_t kMs = 1'000'000;

class Timeline : public testing::Test {
 protected:
  LocationId code(uint64_t address, std::vector<std::string> innermost_first = {}, uint64_t function_start = 0) {
    const LocationId id =
        b.location({.mapping = lib, .address = address, .file_address = address, .function_start = function_start});
    std::vector<Line> lines;
    for (const auto& name : innermost_first) lines.push_back({.function = b.function({.name = b.intern(name)})});
    if (!lines.empty()) b.set_lines(id, lines);
    return id;
  }
  void sample(uint64_t time, std::vector<LocationId> root_first) { sample(time, b.stack(root_first), thread); }
  void sample(uint64_t time, CallSiteId site, ThreadId who) {
    b.add_sample({.time_ns = time, .thread = who, .site = site, .metric = metric});
  }
  std::vector<std::string> slices(const Options& options) {
    p = b.take();
    std::vector<std::string> out;
    for_each_slice(p, options, [&](const FrameSlice& s) {
      std::string name = "?";
      if (s.location.valid() && !p.lines_of(s.location).empty())
        name = p.text(p.functions[p.lines_of(s.location)[s.line].function.index()].name);
      out.push_back(std::to_string(s.depth) + " " + name + " " + std::to_string(s.start_ns) + "-" +
                    std::to_string(s.end_ns));
    });
    return out;
  }

  using Lines = std::vector<std::string>;
  ProfileBuilder b;
  Profile p;
  MappingId lib = b.mapping({.path = b.intern("/lib/libx.so")});
  MetricId metric = b.add_metric("cpu-clock", "nanoseconds", 10, true);
  ThreadId thread = b.add_thread(b.add_process(1, "p"), 1, "t");
};

TEST_F(Timeline, ComparesFromTheRootAndClosesFromTheDeepest) {
  const auto main = code(1, {"main"}), f = code(2, {"f"}), g = code(3, {"g"}), h = code(4, {"h"});
  sample(10, {main, f, g});
  sample(20, {main, f, h});
  sample(30, {main, g});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-40", "1 f 10-30", "2 g 10-20", "2 h 20-30", "1 g 30-40"}));
}

TEST_F(Timeline, AnotherLineOfAFunctionIsTheSameFrame) {
  sample(10, {code(1, {"main"}), code(2, {"f"})});
  sample(20, {code(5, {"main"}), code(6, {"f"})});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-30", "1 f 10-30"}));
}

TEST_F(Timeline, InlinedFunctionsAreFramesOfTheirOwn) {
  sample(10, {code(1, {"inner", "middle", "outer"})});
  sample(20, {code(2, {"other", "middle", "outer"})});
  EXPECT_EQ(slices({}), (Lines{"0 outer 10-30", "1 middle 10-30", "2 inner 10-20", "2 other 20-30"}));
}

TEST_F(Timeline, UnnamedCodeGoesOnWithinOneFunction) {
  const auto main = code(1, {"main"});
  sample(10, {main, code(0x4010, {}, 0x4000)});
  sample(20, {main, code(0x4020, {}, 0x4000)});
  sample(30, {main, code(0x4030, {"[libx.so+0x4030]"}, 0x4000)});
  sample(40, {main, code(0x5000, {}, 0x5000)});
  sample(50, {main, code(0x6000)});
  sample(60, {main, code(0x6001)});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-70", "1 ? 10-40", "1 ? 40-50", "1 ? 50-60", "1 ? 60-70"}));
}

TEST_F(Timeline, ARealNameIsNeverTakenForItsAddress) {
  sample(10, {code(0x4010, {"f"}, 0x4000)});
  sample(20, {code(0x4020, {"g"}, 0x4000)});
  EXPECT_EQ(slices({}), (Lines{"0 f 10-20", "0 g 20-30"}));
}

TEST_F(Timeline, SamplesWithoutAStackAreShownAsUnknown) {
  sample(10, {code(1, {"main"})});
  sample(20, {});
  sample(30, {});
  sample(40, {code(1, {"main"})});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-20", "0 ? 20-40", "0 main 40-50"}));
}

TEST_F(Timeline, TheThreadsExitEndsTheLastSampleSooner) {
  b.profile().threads[0].end_ns = 24;
  sample(10, {code(1, {"main"})});
  sample(20, {code(1, {"main"})});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-24"}));
  EXPECT_EQ(wall_weights(p, {}).of_samples, (std::vector<uint64_t>{10, 4}));
}

TEST_F(Timeline, GapsAreCutOnlyWhenAsked) {
  const auto main = code(1, {"main"});
  sample(0, {main});
  sample(20 * kMs, {main});
  sample(5000 * kMs, {main});
  EXPECT_EQ(slices({.gaps = Gaps::kCut, .interval_ns = 20 * kMs}),
            (Lines{"0 main 0-40000000", "0 main 5000000000-5020000000"}));
  const auto cut = wall_weights(p, {.gaps = Gaps::kCut, .interval_ns = 20 * kMs}).of_samples;
  EXPECT_EQ(cut[0] + cut[1] + cut[2], 60 * kMs);
  const auto extended = wall_weights(p, {.gaps = Gaps::kExtend, .interval_ns = 20 * kMs}).of_samples;
  EXPECT_EQ(extended[0] + extended[1] + extended[2], 5020 * kMs);
}

TEST_F(Timeline, AGapIsSeenWithoutBeingToldTheRate) {
  for (int64_t weight : {int64_t{1}, int64_t{20} * int64_t{kMs}}) {
    ProfileBuilder import;
    const ThreadId t = import.add_thread(import.add_process(1, "p"), 1, "t");
    const MetricId m = import.add_metric("cpu-clock", "nanoseconds", 0, true);
    for (uint64_t time : {0, 20, 5000})
      import.add_sample({.time_ns = time * kMs, .weight = weight, .thread = t, .metric = m});
    const Profile imported = import.take();
    uint64_t wall = 0;
    for (uint64_t w : wall_weights(imported, default_options(imported)).of_samples) wall += w;
    EXPECT_EQ(wall, 60 * kMs);
  }
}

TEST_F(Timeline, ExactlyThreeIntervalsAreNoGap) {
  sample(10, {code(1, {"main"})});
  sample(40, {code(1, {"main"})});
  sample(71, {code(1, {"main"})});
  EXPECT_EQ(slices({.gaps = Gaps::kCut}), (Lines{"0 main 10-50", "0 main 71-81"}));
}

TEST_F(Timeline, OfSamplesAtOneTimeTheLastIsShown) {
  const auto main = code(1, {"main"}), f = code(2, {"f"}), g = code(3, {"g"});
  sample(10, {main, f});
  sample(10, {main, g});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-20", "1 g 10-20"}));
}

TEST_F(Timeline, OutOfOrderInputIsWhole) {
  const auto main = code(1, {"main"});
  for (uint64_t t : {5, 3, 4}) sample(t, {main});
  EXPECT_EQ(slices({.interval_ns = 1}), (Lines{"0 main 3-6"}));
  EXPECT_EQ(p.samples.size(), 3u);
}

TEST_F(Timeline, WaitingInsideAFrameCountsAsWallTime) {
  const auto main = code(1, {"main"}), lock = code(2, {"lock"});
  for (uint64_t i = 0; i < 50; ++i) sample((1 + i) * kMs, {main, lock});
  for (uint64_t i = 0; i < 50; ++i) sample((251 + i) * kMs, {main, lock});
  b.profile().metrics[0].period = kMs;
  b.profile().run.has_switches = true;
  EXPECT_EQ(slices(default_options(b.profile())), (Lines{"0 main 1000000-301000000", "1 lock 1000000-301000000"}));
  uint64_t wall = 0;
  for (uint64_t w : wall_weights(p, default_options(p)).of_samples) wall += w;
  EXPECT_EQ(wall, 300 * kMs);
}

TEST_F(Timeline, AWaitIsShownFromTheSwitchOutAndItsUserPartAfterwards) {
  const auto main = code(1, {"main"}), lock = code(2, {"lock"}), work = code(3, {"work"});
  const auto kernel = b.location({.address = 4, .file_address = 4, .kind = FrameKind::kKernel});
  sample(10, {main, work});
  sample(20, {main, work});
  b.profile().off_cpu.push_back(
      {.thread = thread, .start_ns = 24, .end_ns = 224, .site = b.stack(std::vector{main, lock, kernel})});
  sample(230, {main, work});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-240", "1 work 10-24", "1 lock 24-230", "2 ? 24-224", "1 work 230-240"}));
  const WallWeights wall = wall_weights(p, {});
  EXPECT_EQ(wall.of_samples, (std::vector<uint64_t>{10, 4, 10}));
  EXPECT_EQ(wall.of_off_cpu, (std::vector<uint64_t>{200}));
  EXPECT_EQ(wall.of_resumed, (std::vector<uint64_t>{6}));
}

TEST_F(Timeline, AWaitWithoutAStackChangesNothing) {
  sample(10, {code(1, {"main"})});
  b.profile().off_cpu.push_back({.thread = thread, .start_ns = 12, .end_ns = 90});
  sample(100, {code(1, {"main"})});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-110"}));
}

TEST_F(Timeline, AThreadThatOnlyWaitsHasATimelineAndAWaitIsNoGap) {
  const CallSiteId site = b.stack(std::vector{code(1, {"main"})});
  b.profile().off_cpu.push_back({.thread = thread, .start_ns = 100, .end_ns = 5000, .site = site});
  b.profile().off_cpu.push_back({.thread = thread, .start_ns = 5010, .end_ns = 9000, .site = site, .is_open = true});
  EXPECT_EQ(slices({.gaps = Gaps::kCut}), (Lines{"0 main 100-9000"}));
}

TEST_F(Timeline, EachMetricHasItsOwnTimeline) {
  const MetricId faults = b.add_metric("page-faults", "count");
  sample(10, {code(1, {"main"})});
  b.add_sample({.time_ns = 15, .thread = thread, .site = b.stack(std::vector{code(2, {"f"})}), .metric = faults});
  EXPECT_EQ(slices({}), (Lines{"0 main 10-20"}));
  EXPECT_EQ(wall_weights(p, {.metric = faults, .interval_ns = 3}).of_samples, (std::vector<uint64_t>{0, 3}));
}

TEST_F(Timeline, ABreakEndsWhatWasShown) {
  const auto f = code(1, {"f"});
  sample(10, {f});
  sample(20, {f});
  sample(50, {f});
  const MetricId other = b.add_metric("faults", "count");
  b.profile().breaks = {{.thread = thread, .time_ns = 30, .metric = metric}, {.thread = thread, .time_ns = 15, .metric = other},
                        {.thread = thread, .time_ns = 40, .metric = metric}};
  EXPECT_EQ(slices({}), (Lines{"0 f 10-30", "0 f 50-60"}));
  EXPECT_EQ(wall_weights(p, {}).of_samples, (std::vector<uint64_t>{10, 10, 10}));
}

TEST_F(Timeline, ABreakAndTheEndOfAThreadBoundTheLastSample) {
  sample(10, {code(1, {"f"})});
  b.profile().breaks = {{.thread = thread, .time_ns = 14}};
  EXPECT_EQ(slices({}), (Lines{"0 f 10-14"}));
}

TEST_F(Timeline, TheIntervalComesFromTheProfile) {
  b.profile().metrics[0].period = 0;
  for (uint64_t t : {100, 107, 114, 121, 400}) sample(t, {code(1, {"main"})});
  p = b.take();
  EXPECT_EQ(resolved(p, {}).interval_ns, 7u);
  p.run.sampling_interval_ns = 9;
  EXPECT_EQ(resolved(p, {}).interval_ns, 9u);
  p.metrics[0].period = 11;
  EXPECT_EQ(resolved(p, {}).interval_ns, 11u);
  EXPECT_EQ(resolved(Profile(), {}).interval_ns, 1u);
}

TEST_F(Timeline, DepthFiftyThousand) {
  sample(10, std::vector<LocationId>(50'000, code(1, {"f"})));
  sample(20, std::vector<LocationId>(49'999, code(1, {"f"})));
  EXPECT_EQ(slices({}).size(), 50'000u);
}

// Random stacks, times and threads; the promises of timeline.h checked slice by slice against the samples.
class TimelineProperty : public Timeline, public testing::WithParamInterface<uint32_t> {
 protected:
  void make() {
    std::mt19937 random(GetParam());
    std::vector<LocationId> places;
    for (uint64_t i = 1; i <= 12; ++i) {
      std::vector<std::string> lines;
      for (uint64_t n = random() % 4; n > 0; --n)
        lines.push_back(std::string(1, static_cast<char>('a' + random() % 5)));
      places.push_back(code(0x1000 + i, lines, lines.empty() && random() % 2 ? 0x1000 + i / 4 : 0));
    }
    std::vector<ThreadId> threads{thread};
    for (int i = 2; i <= 4; ++i) threads.push_back(b.add_thread(ProcessId(size_t{0}), i, "t"));
    for (int i = 0; i < 300; ++i) {
      std::vector<LocationId> stack;
      for (uint64_t n = random() % 7; n > 0; --n) stack.push_back(places[random() % places.size()]);
      sample(random() % 3000, b.stack(stack), threads[random() % threads.size()]);
    }
    p = b.take();
  }
};

TEST_P(TimelineProperty, SlicesAreNestedGaplessAndAddUp) {
  make();
  for (Gaps gaps : {Gaps::kExtend, Gaps::kCut}) {
    const Options options{.gaps = gaps};
    const auto weights = wall_weights(p, options).of_samples;
    std::map<ThreadId, uint64_t> wall, roots;
    for (size_t i = 0; i < weights.size(); ++i) wall[p.samples[i].thread] += weights[i];

    std::vector<FrameSlice> open;
    FrameSlice last;
    for_each_slice(p, options, [&](const FrameSlice& s) {
      ASSERT_LT(s.start_ns, s.end_ns);
      if (s.thread == last.thread) {
        ASSERT_LE(std::pair(last.start_ns, last.depth), std::pair(s.start_ns, s.depth));
      } else {
        open.clear();
      }
      while (!open.empty() && open.back().end_ns <= s.start_ns) open.pop_back();
      ASSERT_EQ(open.size(), s.depth) << "a slice lies directly in the one of the depth above, and overlaps no other";
      if (s.depth > 0) {
        ASSERT_LE(s.end_ns, open.back().end_ns);
      } else {
        roots[s.thread] += s.end_ns - s.start_ns;
      }
      open.push_back(s);
      last = s;
    });
    EXPECT_EQ(roots, wall);
  }
}

TEST_P(TimelineProperty, ExtendedWallIsLastEndMinusFirstStart) {
  make();
  const auto weights = wall_weights(p, {}).of_samples;
  std::map<ThreadId, uint64_t> wall;
  std::map<ThreadId, std::pair<uint64_t, uint64_t>> spans;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Sample& s = p.samples[i];
    wall[s.thread] += weights[i];
    auto [it, added] = spans.try_emplace(s.thread, s.time_ns, s.time_ns);
    it->second.second = s.time_ns;
  }
  for (const auto& [who, span] : spans) EXPECT_EQ(wall[who], span.second - span.first + 10);
}

// At any moment the open slices are the frames of the newest sample.
TEST_P(TimelineProperty, AtEverySampleTheDepthIsItsStacks) {
  make();
  std::vector<FrameSlice> all;
  for_each_slice(p, {}, [&](const FrameSlice& s) { all.push_back(s); });
  for (size_t i = 0; i < p.samples.size(); ++i) {
    const Sample& s = p.samples[i];
    if (wall_weights(p, {}).of_samples[i] == 0) continue;
    uint64_t depth = 0;
    for (CallSiteId at = s.site; at.valid(); at = p.sites[at.index()].parent)
      depth += std::max<size_t>(1, p.lines_of(p.sites[at.index()].location).size());
    if (!s.site.valid()) depth = 1;
    const auto open = std::ranges::count_if(all, [&](const FrameSlice& f) {
      return f.thread == s.thread && f.start_ns <= s.time_ns && s.time_ns < f.end_ns;
    });
    EXPECT_EQ(static_cast<uint64_t>(open), depth);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TimelineProperty, testing::Range(1u, 21u));

class States : public testing::Test {
 protected:
  std::vector<std::string> states() {
    const Profile p = b.take();
    std::vector<std::string> out;
    for_each_state(p, [&](const StateSlice& s) {
      static constexpr const char* kNames[] = {"on", "runnable", "waiting", "unknown"};
      std::string state = kNames[static_cast<int>(s.state)];
      if (s.interval != StateSlice::kNoInterval) state += ":" + std::string(name_of(s.wait_class));
      out.push_back(std::to_string(s.thread.value) + " " + state + " " +
                    std::to_string(s.start_ns) + "-" + std::to_string(s.end_ns));
    });
    return out;
  }
  void on(ThreadId t, uint64_t start, uint64_t end, bool preempted = false) {
    b.profile().on_cpu.push_back({.thread = t, .start_ns = start, .end_ns = end, .preempted = preempted});
  }
  using Lines = std::vector<std::string>;
  ProfileBuilder b;
  ThreadId a = b.add_thread(b.add_process(1, "p"), 1, "a");
  ThreadId c = b.add_thread(ProcessId(size_t{0}), 2, "c");
};

TEST_F(States, BetweenSwitchesAThreadWaitsOrIsRunnable) {
  b.profile().run.start_ns = 100;
  b.profile().run.end_ns = 200;
  on(a, 110, 120);
  on(a, 130, 140, true);
  on(a, 150, 160);
  EXPECT_EQ(states(), (Lines{"0 unknown 100-110", "0 on 110-120", "0 waiting 120-130", "0 on 130-140",
                             "0 runnable 140-150", "0 on 150-160", "0 waiting 160-200", "1 unknown 100-200"}));
}

TEST_F(States, AThreadsLifeBoundsItsLane) {
  b.profile().run.start_ns = 100;
  b.profile().run.end_ns = 200;
  b.profile().threads[0].start_ns = 105;
  b.profile().threads[0].end_ns = 150;
  b.profile().threads[1].start_ns = 120;
  on(a, 105, 150);
  on(c, 120, 130);
  EXPECT_EQ(states(), (Lines{"0 on 105-150", "1 on 120-130", "1 waiting 130-200"}));
}

TEST_F(States, OverlappingRecordsMakeNoOverlappingSlices) {
  on(a, 10, 30, true);
  on(a, 20, 25);
  on(a, 30, 40);
  EXPECT_EQ(states(), (Lines{"0 on 10-40"}));
}

TEST_F(States, OffCpuIntervalsTellTheClassAndTheRunnablePart) {
  b.profile().run.start_ns = 100;
  b.profile().run.end_ns = 200;
  on(a, 110, 120);
  on(a, 140, 150);
  on(a, 160, 170);
  auto off = [&](uint64_t start, uint64_t end, uint64_t woken, WaitClass wait_class) {
    b.profile().off_cpu.push_back(
        {.thread = a, .start_ns = start, .end_ns = end, .woken_ns = woken, .wait_class = wait_class});
  };
  off(100, 110, 0, WaitClass::kOther);
  off(120, 140, 135, WaitClass::kFutex);
  off(150, 160, 150, WaitClass::kSched);
  off(172, 200, 0, WaitClass::kIo);
  EXPECT_EQ(states(), (Lines{"0 waiting:other 100-110", "0 on 110-120", "0 waiting:futex 120-135",
                             "0 runnable:sched 135-140", "0 on 140-150", "0 runnable:sched 150-160", "0 on 160-170",
                             "0 waiting 170-172", "0 waiting:io 172-200", "1 unknown 100-200"}));
}

TEST_F(States, WithoutSwitchesAllIsUnknown) {
  const MetricId m = b.add_metric("cpu-clock", "nanoseconds", 1, true);
  b.add_sample({.time_ns = 5, .thread = c, .metric = m});
  b.add_sample({.time_ns = 9, .thread = c, .metric = m});
  EXPECT_EQ(states(), (Lines{"1 unknown 5-9"}));
}

}  // namespace
}  // namespace cprof::timeline
