#include "cli/report_view.h"

#include <gtest/gtest.h>

#include <sstream>

#include "cli/text_layout.h"
#include "profile/builder.h"

namespace cprof::cli {
namespace {

using namespace profile;
using Kind = analyze::WeightSelection::Kind;

class ReportView : public testing::Test {
 protected:
  LocationId at(std::string_view name, FrameKind kind = FrameKind::kUser) {
    const Line line{.function = b.function({.name = b.intern(name)})};
    return b.named_location(app, kind, {&line, 1});
  }
  LocationId unnamed(uint64_t address) {
    return b.location({.mapping = lib, .address = address, .file_address = address});
  }
  void samples(int count, std::vector<LocationId> root_first, StackEnd end = StackEnd::kComplete) {
    for (int i = 0; i < count; ++i)
      b.add_sample({.time_ns = now += kMs,
                    .weight = kMs,
                    .thread = thread,
                    .site = b.stack(root_first),
                    .metric = clock,
                    .end = end});
  }
  static analyze::Weights weights_of(const Profile& p) { return *view_weights(p, Kind::kSamples); }

  static constexpr int64_t kMs = 1'000'000;
  ProfileBuilder b;
  MappingId app = b.mapping({.path = b.intern("/bin/app")});
  MappingId lib = b.mapping({.path = b.intern("/lib/libx.so")});
  MetricId clock = b.add_metric("cpu-clock", "nanoseconds", kMs, true);
  ThreadId thread = b.add_thread(b.add_process(1, "app"), 1, "app");
  uint64_t now = 0;
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

void expect_fits(const std::string& text, size_t columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(columns_of(line), columns) << line;
    EXPECT_FALSE(line.ends_with(' ')) << '"' << line << '"';
  }
}

TEST_F(ReportView, SummaryTellsTheWaits) {
  samples(10, {at("main"), at("work")});
  b.add_metric(kOffCpuMetric, "nanoseconds");
  const auto site = b.stack(std::vector{at("main"), at("lock"), at("futex_wait", FrameKind::kKernel)});
  b.profile().off_cpu = {{.thread = thread, .start_ns = 20 * kMs, .end_ns = 60 * kMs, .woken_ns = 50 * kMs,
                          .wait_class = WaitClass::kFutex, .site = site}};
  const Profile p = b.take();
  const std::string text = render_summary(p);
  EXPECT_TRUE(has(text, "samples:          10 of cpu-clock;")) << text;
  EXPECT_FALSE(has(text, "by metric")) << text;
  EXPECT_TRUE(has(text, "off the CPU:      40.0 ms in 1 wait: futex 30.0 ms (75.0 %), sched 10.0 ms (25.0 %)\n")) << text;
  EXPECT_TRUE(has(text, "longest waits, by time off the CPU\n     time     times  for\n  30.0 ms         1  futex    lock < main\n")) << text;
  expect_fits(text, 100);
  const auto weights = view_weights(p, Kind::kMetric, kOffCpuMetric);
  ASSERT_TRUE(weights);
  EXPECT_TRUE(has(render_top(p, *weights), "futex_wait"));
}

TEST_F(ReportView, SummaryOfAWholeRun) {
  samples(60, {at("main"), at("work")});
  samples(40, {at("main"), at("rest")});
  b.profile().run.sampling_interval_ns = kMs;
  b.profile().run.start_ns = 1;
  b.profile().run.end_ns = 2'000'000'001;
  const std::string text = render_summary(b.take(), {.outputs = {"out.pftrace", "my out.folded"}});
  EXPECT_TRUE(has(text, "samples:          100 of cpu-clock at 1000 Hz in 2.00 s; 1 thread, 1 process\n")) << text;
  EXPECT_TRUE(has(text, "lost:             0\n"));
  EXPECT_TRUE(has(text, "stacks complete:  100.0 % (100 of 100), 0 incomplete\n"));
  EXPECT_TRUE(has(text, "frames unnamed:   0.0 % (0 of 200)\n"));
  EXPECT_TRUE(has(text, "   60.0 %    60.0 %  work  app\n"));
  EXPECT_TRUE(has(text, "hottest functions, by samples of cpu-clock"));
  EXPECT_TRUE(has(text, "next:             cprof view 'my out.folded', or cprof report 'my out.folded'\n"));
  EXPECT_FALSE(has(text, "cost:"));
  expect_fits(text, 100);
}

TEST_F(ReportView, IncompleteStacksHaveNumberShareReasonAndMend) {
  samples(90, {at("main")});
  samples(8, {at("f")}, StackEnd::kTruncatedSnapshot);
  samples(2, {at("f")}, StackEnd::kNoUnwindInfo);
  samples(10, {at("kthread", FrameKind::kKernel)}, StackEnd::kNotUnwound);
  const std::string text = render_summary(b.take());
  EXPECT_TRUE(has(text, "stacks complete:  90.0 % (90 of 100), 10 incomplete (10.0 %)\n  truncated-snapshot: 8 (8.0 %): ")) << text;
  EXPECT_TRUE(has(text, "--stack-size"));
  EXPECT_TRUE(has(text, "  no-unwind-info: 2 (2.0 %): "));
  EXPECT_LT(text.find("truncated-snapshot"), text.find("no-unwind-info"));
  expect_fits(text, 100);
}

TEST_F(ReportView, OneIncompleteStackOfManyIsNotRoundedAway) {
  samples(99'999, {at("main")});
  samples(1, {at("f")}, StackEnd::kBadPc);
  EXPECT_TRUE(has(render_summary(b.take()), "stacks complete:  99.9 % (99,999 of 100,000), 1 incomplete (0.0 %)\n  bad-pc: 1 (0.0 %): "));
}

TEST_F(ReportView, LossesAndNotesAreSaid) {
  samples(75, {at("main")});
  b.profile().diagnostics.add("lost_samples", Severity::kDataLoss, "samples lost in the kernel's ring; lower -F", 25);
  b.profile().diagnostics.add("unreadable", Severity::kError, "files that could not be read", 2, "/bin/\x1b[2J");
  b.profile().diagnostics.add("quiet", Severity::kInfo, "only information");
  const std::string text = render_summary(b.take());
  EXPECT_TRUE(has(text, "lost:             25 (25.0 %): samples lost in the kernel's ring; lower -F\n")) << text;
  EXPECT_TRUE(has(text, "error:            2 × files that could not be read (first: /bin/?[2J)\n"));
  EXPECT_FALSE(has(text, "only information"));
}

TEST_F(ReportView, TheCostIsMeasuredAndABetterRateNamed) {
  samples(1000, {at("main")});
  b.profile().run.sampling_interval_ns = kMs;
  b.profile().run.collector_cpu_ns = 100 * kMs;
  b.profile().run.bytes_read = 201'000'000;
  const Profile costly = b.take();
  EXPECT_TRUE(has(render_summary(costly),
                  "cost:             100 ms of CPU, 201 MB read; 100 µs a sample, 10.0 % of the "
                  "target's CPU time; -F\n                  200 would cost 2 %\n"))
      << render_summary(costly);
}

TEST_F(ReportView, ACheapRunGetsNoAdvice) {
  samples(1000, {at("main")});
  b.profile().run.sampling_interval_ns = kMs;
  b.profile().run.collector_cpu_ns = 40 * kMs;
  const std::string text = render_summary(b.take());
  EXPECT_TRUE(has(text, "4.0 % of the target's CPU time\n")) << text;
  EXPECT_FALSE(has(text, "-F"));
}

TEST_F(ReportView, SamplesWithoutAStackAreCountedEverywhere) {
  samples(60, {at("main")});
  samples(40, {});
  const Profile p = b.take();
  EXPECT_TRUE(has(render_summary(p), "without a stack:  40 (40.0 %), counted on [unknown]\n"));
  EXPECT_TRUE(has(render_top(p, weights_of(p)), "functions by self: samples of cpu-clock, 100 in all\n"));
  EXPECT_TRUE(has(render_top(p, weights_of(p)), " 40   40.0 %      40   40.0 %   [unknown]\n"))
      << render_top(p, weights_of(p));
  EXPECT_TRUE(has(render_tree(p, weights_of(p)), "└─ [unknown]\n"));
}

TEST_F(ReportView, UnnamedFramesNameTheirFiles) {
  samples(1, {at("main"), unnamed(0x10)});
  EXPECT_TRUE(has(render_summary(b.take()), "frames unnamed:   50.0 % (1 of 2), most in libx.so\n"));
}

TEST_F(ReportView, TopIsAlignedAndCounted) {
  samples(1200, {at("main"), at("work")});
  samples(3, {at("main"), at(std::string(300, 'x'))});
  samples(1, {at("main")});
  const Profile p = b.take();
  const std::string text = render_top(p, weights_of(p), {.max_rows = 2});
  EXPECT_TRUE(has(text, " 1,200   99.7 %   1,200   99.7 %   work ")) << text;
  EXPECT_TRUE(has(text, "     3    0.2 %       3    0.2 %   xxx")) << text;
  EXPECT_TRUE(has(text, "…"));
  EXPECT_TRUE(has(text, " and 1 row more, 0.1 % of the total\n"));
  expect_fits(text, 100);
}

TEST_F(ReportView, EveryViewSaysItsWeight) {
  samples(2, {at("main")});
  now += 97 * kMs;
  samples(1, {at("main")});
  b.profile().run.has_switches = true;
  const Profile p = b.take();
  EXPECT_TRUE(has(render_top(p, *view_weights(p, Kind::kWall)), "wall time, 100.00 ms in all"))
      << render_top(p, *view_weights(p, Kind::kWall));
  EXPECT_TRUE(has(render_tree(p, *view_weights(p, Kind::kMetric)), "cpu-clock, 3.00 ms in all"));
}

TEST_F(ReportView, UnknownMetricsAndImpossibleWeightsAreRefused) {
  const Profile p = b.take();
  EXPECT_EQ(view_weights(p, Kind::kMetric, "cycles").error().message, "no metric cycles; there is: cpu-clock");
  EXPECT_TRUE(has(view_weights(p, Kind::kWall).error().message, "--weight samples"));
}

TEST_F(ReportView, TreeMovesRightOnlyWhereCallsBranch) {
  const auto start = at("_start"), main = at("main"), parse = at("parse"), token = at("token");
  samples(50, {start, main, parse, token});
  samples(10, {start, main, parse});
  samples(39, {start, main, at("write"), at("sys_write", FrameKind::kKernel)});
  samples(1, {start, main});
  const Profile p = b.take();
  EXPECT_EQ(render_tree(p, weights_of(p)),
            "call tree: samples of cpu-clock, 100 in all\n\n"
            "    total     self\n"
            "  100.0 %    0.0 %  _start\n"
            "  100.0 %    1.0 %  main\n"
            "   60.0 %   10.0 %  ├─ parse\n"
            "   50.0 %   50.0 %  │  token\n"
            "   39.0 %    0.0 %  └─ write\n"
            "   39.0 %   39.0 %     sys_write [k]\n");
}

TEST_F(ReportView, SmallBranchesAreCountedNotShown) {
  samples(199, {at("main"), at("big")});
  samples(1, {at("main"), at("small")});
  const Profile p = b.take();
  const std::string text = render_tree(p, weights_of(p), {.min_share = 0.01});
  EXPECT_FALSE(has(text, "small\n"));
  EXPECT_TRUE(has(text, " not shown: 1 branch of less than 1.0 %\n"));
  EXPECT_TRUE(has(text, "main\n   99.5 %   99.5 %  big\n")) << text;
}

TEST_F(ReportView, DepthFiftyThousandIsShownShort) {
  const auto f = at("f"), g = at("g"), h = at("h");
  std::vector<LocationId> recursive{at("main")}, alternating{at("main")};
  for (int i = 0; i < 50'000; ++i) {
    recursive.push_back(f);
    alternating.push_back(i % 2 ? g : h);
  }
  samples(1, recursive);
  samples(1, alternating);
  const Profile p = b.take();
  const std::string text = render_tree(p, weights_of(p));
  EXPECT_TRUE(has(text, "f × 50,000\n")) << text.substr(0, 1000);
  EXPECT_TRUE(has(text, " not shown: calls more than 200 deep (--depth)\n"));
  EXPECT_LT(text.size(), 20'000u);
  expect_fits(text, 100);
}

TEST_F(ReportView, BranchingAtEveryLevelStaysInTheColumns) {
  std::vector<LocationId> stack{at("main")};
  for (int i = 0; i < 60; ++i) {
    stack.push_back(at("f" + std::to_string(i) + std::string(50, '_')));
    samples(10, stack);
    auto other = stack;
    other.back() = at("g" + std::to_string(i));
    samples(10, other);
  }
  const Profile p = b.take();
  const std::string text = render_tree(p, weights_of(p));
  EXPECT_TRUE(has(text, "⋯ ")) << text;
  expect_fits(text, 100);
}

TEST_F(ReportView, UntimedProfilesAreDescribedByTheirValues) {
  const MetricId space = b.add_metric("inuse_space", "bytes");
  b.add_aggregate({.site = b.stack(std::vector{at("main")}), .metric = space, .value = 2'500'000});
  b.profile().run.default_metric = b.intern("inuse_space");
  const Profile p = b.take();
  const std::string text = render_summary(p);
  EXPECT_TRUE(has(text, "values:           1 of cpu-clock (nanoseconds), inuse_space (bytes), without times\n"))
      << text;
  EXPECT_FALSE(has(text, "stacks complete"));
  EXPECT_TRUE(has(render_top(p, *view_weights(p, Kind::kMetric)), "inuse_space, 2.50 MB in all"));
}

TEST_F(ReportView, EmptyProfilesAreNoTrouble) {
  const Profile p = b.take();
  expect_fits(render_summary(p), 100);
  expect_fits(render_top(p, weights_of(p)), 100);
  expect_fits(render_tree(p, weights_of(p)), 100);
}

TEST_F(ReportView, HostileNamesCannotTouchTheTerminal) {
  samples(1, {at("evil\x1b]0;title\x07\n")});
  const Profile p = b.take();
  for (const std::string& text : {render_summary(p), render_top(p, weights_of(p)), render_tree(p, weights_of(p))}) {
    EXPECT_FALSE(has(text, "\x1b"));
    EXPECT_TRUE(has(text, "evil?]0;title??"));
  }
}

}  // namespace
}  // namespace cprof::cli
