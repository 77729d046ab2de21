// Weights, top, call tree, quality and threads over profiles made by hand, and the first three against a slow but plain
// count over random profiles.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "analyze/call_tree.h"
#include "analyze/frames.h"
#include "analyze/quality.h"
#include "analyze/threads.h"
#include "analyze/top.h"
#include "analyze/waits.h"
#include "profile/builder.h"

namespace cprof::analyze {
namespace {

using namespace profile;

class Views : public testing::Test {
 protected:
  Line line(std::string_view name, uint32_t number = 0) {
    return {.function = b.function({.name = b.intern(name), .file = b.intern("dir/x.cc")}), .line = number};
  }
  LocationId at(uint64_t address, std::vector<Line> lines = {}) {
    const LocationId id = b.location({.mapping = app, .address = address, .file_address = address});
    b.set_lines(id, lines);
    return id;
  }
  void sample(std::vector<LocationId> root_first, int64_t weight = 10, StackEnd end = StackEnd::kComplete) {
    b.add_sample({.time_ns = ++now,
                  .weight = weight,
                  .thread = thread,
                  .site = b.stack(root_first),
                  .metric = clock,
                  .end = end});
  }
  std::map<std::string, std::pair<int64_t, int64_t>> top(const Profile& p,
                                                         Granularity granularity = Granularity::kFunctions) {
    const Groups groups(p, granularity);
    std::map<std::string, std::pair<int64_t, int64_t>> out;
    for (const TopRow& row : top_functions(p, groups, sum_by_site(p, sample_weights(p, {}))))
      EXPECT_TRUE(out.emplace(groups.name(row.group).text, std::pair(row.self, row.total)).second);
    return out;
  }
  using Top = std::map<std::string, std::pair<int64_t, int64_t>>;

  ProfileBuilder b;
  MappingId app = b.mapping({.path = b.intern("/bin/app")});
  MetricId clock = b.add_metric("cpu-clock", "nanoseconds", 10, true);
  ThreadId thread = b.add_thread(b.add_process(1, "app"), 1, "app");
  uint64_t now = 0;
};

std::string text_of(const CallTree& tree, const Groups& groups) {
  std::string out;
  std::vector<uint32_t> todo{0};
  while (!todo.empty()) {
    const uint32_t node = todo.back();
    todo.pop_back();
    if (node != 0)
      out += std::string(tree.nodes[node].depth - 1, ' ') + groups.name(tree.nodes[node].group).text + " " +
             std::to_string(tree.nodes[node].total) + "/" + std::to_string(tree.nodes[node].self) + "\n";
    const auto children = tree.children(node);
    todo.insert(todo.end(), children.rbegin(), children.rend());
  }
  return out;
}

class WaitViews : public Views {
 protected:
  // main > lock waits 30 of which 10 runnable; main > lock again, without a waking, 20; a preempted one of 5, unknown.
  Profile waits() {
    const auto main = at(1, {line("main")}), lock = at(2, {line("lock")});
    const auto kernel = b.location({.address = 9, .file_address = 9, .kind = FrameKind::kKernel});
    b.add_metric(kOffCpuMetric, "nanoseconds");
    const auto site = b.stack(std::vector{main, lock, kernel});
    b.profile().off_cpu = {
        {.thread = thread, .start_ns = 100, .end_ns = 130, .woken_ns = 120, .wait_class = WaitClass::kFutex, .site = site, .end = StackEnd::kComplete},
        {.thread = thread, .start_ns = 200, .end_ns = 220, .wait_class = WaitClass::kFutex, .site = site, .end = StackEnd::kComplete},
        {.thread = thread, .start_ns = 300, .end_ns = 305, .woken_ns = 300, .wait_class = WaitClass::kSched}};
    sample({main});
    return b.take();
  }
};

TEST_F(WaitViews, TotalsByClass) {
  const WaitTotals totals = wait_totals(waits());
  EXPECT_EQ(totals.ns, 55u);
  EXPECT_EQ(totals.waits, 3u);
  auto of = [&](WaitClass c) { return totals.by_class[static_cast<size_t>(c)]; };
  EXPECT_EQ(of(WaitClass::kFutex).ns, 40u);
  EXPECT_EQ(of(WaitClass::kFutex).count, 2u);
  EXPECT_EQ(of(WaitClass::kSched).ns, 15u);
  EXPECT_EQ(of(WaitClass::kSched).count, 2u);
}

TEST_F(WaitViews, TheLongestWaitsByPlaceAndClass) {
  const auto rows = top_waits(waits(), 2);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].where, "lock < main");
  EXPECT_EQ(rows[0].wait_class, WaitClass::kFutex);
  EXPECT_EQ(rows[0].ns, 40);
  EXPECT_EQ(rows[0].count, 2u);
  EXPECT_EQ(rows[1].wait_class, WaitClass::kSched);
  EXPECT_EQ(rows[1].ns, 10);
}

TEST_F(WaitViews, TheMetricOfWaitsIsTheirTime) {
  const Profile p = waits();
  const Weights weights = sample_weights(p, {.kind = WeightSelection::Kind::kMetric, .metric = find_metric(p, kOffCpuMetric)});
  EXPECT_EQ(weights.total, 55);
  EXPECT_EQ(weights.unit, "nanoseconds");
  const SiteTotals totals = sum_by_site(p, weights);
  EXPECT_EQ(totals.unknown, 5);
  EXPECT_EQ(sample_weights(p, {}).total, 1) << "samples do not count waits";
  ASSERT_EQ(thread_table(p, weights).size(), 1u);
  EXPECT_EQ(thread_table(p, weights)[0].weight, 55);
}

TEST_F(WaitViews, WallTimeAfterAWaitCountsForTheUserPart) {
  const Profile p = waits();
  const std::vector<uint64_t> samples{7}, off{30, 20, 0}, resumed{4, 0, 0};
  const Weights weights = sample_weights(
      p, {.kind = WeightSelection::Kind::kWall, .wall = samples, .wall_off_cpu = off, .wall_resumed = resumed});
  EXPECT_EQ(weights.total, 61);
  const SiteTotals totals = sum_by_site(p, weights);
  EXPECT_EQ(totals.self(p.off_cpu[0].site.index()), 50);
  EXPECT_EQ(totals.self(user_part(p, p.off_cpu[0].site).index()), 4);
}

TEST_F(Views, RecursionCountsOncePerStack) {
  const auto main = at(1, {line("main")}), f = at(2, {line("f")}), g = at(3, {line("g")});
  sample({main, f, g, f});
  sample({main, f});
  EXPECT_EQ(top(b.take()), (Top{{"main", {0, 2}}, {"f", {2, 2}}, {"g", {0, 1}}}));
}

TEST_F(Views, InlinedFunctionsAreFunctions) {
  sample({at(1, {line("main")}), at(2, {line("inner", 3), line("outer", 9)})});
  const Profile p = b.take();
  EXPECT_EQ(top(p), (Top{{"main", {0, 1}}, {"outer", {0, 1}}, {"inner", {1, 1}}}));
  EXPECT_EQ(top(p, Granularity::kLines), (Top{{"main", {0, 1}}, {"outer x.cc:9", {0, 1}}, {"inner x.cc:3", {1, 1}}}));
  const Groups groups(p, Granularity::kFunctions);
  EXPECT_TRUE(groups.name(groups.of(LocationId(size_t{1}), 0)).is_inlined);
  EXPECT_FALSE(groups.name(groups.of(LocationId(size_t{1}), 1)).is_inlined);
}

TEST_F(Views, GranularityFoldsAddressesLinesAndFunctions) {
  sample({at(0x10, {line("f", 1)})});
  sample({at(0x11, {line("f", 1)})});
  sample({at(0x20, {line("f", 2)})});
  const Profile p = b.take();
  EXPECT_EQ(top(p), (Top{{"f", {3, 3}}}));
  EXPECT_EQ(top(p, Granularity::kLines), (Top{{"f x.cc:1", {2, 2}}, {"f x.cc:2", {1, 1}}}));
  EXPECT_EQ(top(p, Granularity::kAddresses),
            (Top{{"0x10 f x.cc:1", {1, 1}}, {"0x11 f x.cc:1", {1, 1}}, {"0x20 f x.cc:2", {1, 1}}}));
}

TEST_F(Views, UnnamedCodeIsOneRowPerModule) {
  sample({at(0x10), at(0x20)});
  sample({at(0x30, {line("[app+0x30]")})});
  const Profile p = b.take();
  EXPECT_EQ(top(p), (Top{{"[app]", {2, 2}}}));
  EXPECT_EQ(top(p, Granularity::kAddresses),
            (Top{{"[app+0x10]", {0, 1}}, {"[app+0x20]", {1, 1}}, {"[app+0x30]", {1, 1}}}));
}

TEST_F(Views, OneNameInTwoFilesIsTwoFunctions) {
  const Line main{.function = b.function({.name = b.intern("main")})};
  for (auto path : {"/bin/a", "/bin/b"}) {
    const LocationId id = b.location({.mapping = b.mapping({.path = b.intern(path)}), .address = 1, .file_address = 1});
    b.set_lines(id, {&main, 1});
    sample({id});
  }
  const Profile p = b.take();
  const Groups groups(p, Granularity::kFunctions);
  const auto rows = top_functions(p, groups, sum_by_site(p, sample_weights(p, {})));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NE(groups.name(rows[0].group).module, groups.name(rows[1].group).module);
}

TEST_F(Views, SamplesWithoutAStackCountOnUnknown) {
  for (int i = 0; i < 60; ++i) sample({at(1, {line("f")})});
  for (int i = 0; i < 40; ++i) sample({});
  const Profile p = b.take();
  EXPECT_EQ(top(p), (Top{{"f", {60, 60}}, {"[unknown]", {40, 40}}}));
  const Groups groups(p, Granularity::kFunctions);
  const CallTree tree = call_tree(p, groups, sum_by_site(p, sample_weights(p, {})));
  EXPECT_EQ(tree.nodes[0].total, 100);
  EXPECT_EQ(text_of(tree, groups), "f 60/60\n[unknown] 40/40\n");
  EXPECT_EQ(stack_quality(p).without_stack, 40u);
}

TEST_F(Views, TheTreeHasTheHeaviestChildFirstAndCutStacksApart) {
  const auto main = at(1, {line("main")}), f = at(2, {line("f")}), g = at(3, {line("g")});
  sample({main, f});
  sample({main, g});
  sample({main, g, f});
  sample({g, f}, 10, StackEnd::kMaxDepth);
  sample({g}, 10, StackEnd::kNoUnwindInfo);
  const Profile p = b.take();
  const Groups groups(p, Granularity::kFunctions);
  EXPECT_EQ(text_of(call_tree(p, groups, sum_by_site(p, sample_weights(p, {}))), groups),
            "main 3/0\n g 2/1\n  f 1/1\n f 1/1\ng 1/1\n[truncated] 1/0\n g 1/0\n  f 1/1\n");
}

TEST_F(Views, WeightsAreNeverConfused) {
  sample({at(1, {line("f")})}, 7);
  sample({at(1, {line("f")})}, 5);
  const MetricId faults = b.add_metric("page-faults", "count");
  b.add_sample({.time_ns = 9, .weight = 100, .thread = thread, .metric = faults});
  const Profile p = b.take();
  const Weights samples = sample_weights(p, {});
  EXPECT_EQ(samples.total, 2);
  EXPECT_EQ(samples.title, "samples of cpu-clock");
  EXPECT_EQ(samples.unit, "count");
  const Weights values = sample_weights(p, {.kind = WeightSelection::Kind::kMetric});
  EXPECT_EQ(values.total, 12);
  EXPECT_EQ(values.title, "cpu-clock");
  EXPECT_EQ(values.unit, "nanoseconds");
  EXPECT_EQ(sample_weights(p, {.kind = WeightSelection::Kind::kMetric, .metric = faults}).total, 100);
  const std::vector<uint64_t> wall{1000, 2000, UINT64_MAX};
  const Weights walls = sample_weights(p, {.kind = WeightSelection::Kind::kWall, .wall = wall});
  EXPECT_EQ(walls.of_samples, (std::vector<int64_t>{1000, 2000, INT64_MAX}));
  EXPECT_EQ(walls.total, INT64_MAX);
  EXPECT_EQ(walls.title, "wall time");
}

TEST_F(Views, UntimedProfilesFeedTheSameViews) {
  const MetricId samples = b.add_metric("samples", "count"), space = b.add_metric("inuse_space", "bytes");
  const CallSiteId site = b.stack(std::vector{at(1, {line("main")}), at(2, {line("f")})});
  b.add_aggregate({.site = site, .metric = samples, .value = 3});
  b.add_aggregate({.site = site, .metric = space, .value = 4096});
  b.add_aggregate({.metric = samples, .value = 2});
  b.profile().run.default_metric = b.intern("inuse_space");
  const Profile p = b.take();
  EXPECT_EQ(top(p), (Top{{"main", {0, 3}}, {"f", {3, 3}}, {"[unknown]", {2, 2}}}));
  EXPECT_EQ(sample_weights(p, {}).title, "samples");
  const Weights bytes = sample_weights(p, {.kind = WeightSelection::Kind::kMetric});
  EXPECT_EQ(bytes.total, 4096);
  EXPECT_EQ(bytes.unit, "bytes");
  const auto threads = thread_table(p, bytes);
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_FALSE(threads[0].thread.valid());
}

TEST_F(Views, QualityCountsEndsAndNames) {
  const auto f = at(1, {line("f")}), unnamed = at(2);
  sample({f, f});
  sample({f, unnamed}, 1, StackEnd::kTruncatedSnapshot);
  sample({unnamed}, 1, StackEnd::kNotUnwound);
  const StackQuality q = stack_quality(b.take());
  EXPECT_EQ(q.samples, 3u);
  EXPECT_EQ(q.unwound, 2u);
  EXPECT_EQ(q.incomplete, 1u);
  EXPECT_EQ(q.by_end[static_cast<size_t>(StackEnd::kTruncatedSnapshot)], 1u);
  EXPECT_EQ(q.frames, 5u);
  EXPECT_EQ(q.unnamed_frames, 2u);
  ASSERT_EQ(q.unnamed_by_module.size(), 1u);
  EXPECT_EQ(q.unnamed_by_module[0].unnamed_frames, 2u);
}

TEST_F(Views, ThreadsHaveTheirShareAndTimeOnACpu) {
  const ThreadId idle = b.add_thread(ProcessId(size_t{0}), 2, "idle"),
                 waiting = b.add_thread(ProcessId(size_t{0}), 3, "w");
  sample({at(1)});
  sample({at(1)});
  b.profile().on_cpu = {{.thread = waiting, .start_ns = 5, .end_ns = 9}};
  const Profile p = b.take();
  const auto rows = thread_table(p, sample_weights(p, {}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].thread, thread);
  EXPECT_EQ(rows[0].samples, 2u);
  EXPECT_EQ(rows[0].last_ns, 2u);
  EXPECT_EQ(rows[1].thread, waiting);
  EXPECT_EQ(rows[1].on_cpu_ns, 4u);
  EXPECT_NE(idle, waiting);
}

TEST_F(Views, DepthFiftyThousandNeedsNoRecursion) {
  std::vector<LocationId> stack;
  for (uint64_t i = 0; i < 50'000; ++i) stack.push_back(at(i + 1, {line("f" + std::to_string(i % 7))}));
  sample(stack);
  const Profile p = b.take();
  EXPECT_EQ(top(p).at("f0").second, 1);
  const Groups groups(p, Granularity::kFunctions);
  const CallTree tree = call_tree(p, groups, sum_by_site(p, sample_weights(p, {})));
  EXPECT_EQ(tree.nodes.size(), 50'001u);
  EXPECT_EQ(tree.nodes.back().depth, 50'000u);
  EXPECT_EQ(stack_quality(p).frames, 50'000u);
}

TEST_F(Views, EmptyProfile) {
  const Profile p = b.take();
  EXPECT_TRUE(top(p).empty());
  const Groups groups(p, Granularity::kFunctions);
  EXPECT_EQ(call_tree(p, groups, sum_by_site(p, sample_weights(p, {}))).nodes.size(), 1u);
  EXPECT_EQ(stack_quality(p).samples, 0u);
}

class RandomViews : public Views, public testing::WithParamInterface<uint32_t> {
 protected:
  void make() {
    std::mt19937 random(GetParam());
    std::vector<LocationId> places;
    for (uint64_t i = 1; i <= 15; ++i) {
      std::vector<Line> lines;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) lines.push_back(line("f" + std::to_string(random() % 8), 1));
      places.push_back(at(i, lines));
    }
    for (int i = 0; i < 200; ++i) {
      std::vector<LocationId> stack;
      for (uint64_t n = random() % 8; n > 0; --n) stack.push_back(places[random() % places.size()]);
      if (random() % 3 == 0) {
        b.add_aggregate({.site = b.stack(stack), .metric = clock, .value = static_cast<int64_t>(random() % 50) - 10});
      } else {
        sample(stack, 1, random() % 5 == 0 ? StackEnd::kMaxDepth : StackEnd::kComplete);
      }
    }
    p = b.take();
  }
  template <typename Visit>
  void each_stack(Visit&& visit) {
    FrameWalker walker(p);
    for (const Sample& s : p.samples) visit(walker.frames(s), int64_t{1});
    for (const Aggregate& a : p.aggregates) visit(walker.frames(a.site), a.value);
  }
  Profile p;
};

TEST_P(RandomViews, TopEqualsAPlainCount) {
  make();
  Top plain;
  each_stack([&](std::span<const Frame> frames, int64_t weight) {
    plain[std::string(frames.back().name)].first += weight;
    std::set<std::string_view> seen;
    for (const Frame& f : frames)
      if (f.name != kTruncatedFrame && seen.insert(f.name).second) plain[std::string(f.name)].second += weight;
  });
  std::erase_if(plain, [](const auto& row) { return row.second == std::pair<int64_t, int64_t>(); });
  EXPECT_EQ(top(p), plain);
}

TEST_P(RandomViews, TreeEqualsAPlainCount) {
  make();
  std::map<std::string, std::pair<int64_t, int64_t>> plain, made;
  each_stack([&](std::span<const Frame> frames, int64_t weight) {
    std::string path;
    for (const Frame& f : frames) {
      path += ";" + std::string(f.name);
      plain[path].second += weight;
    }
    plain[path].first += weight;
  });
  const Groups groups(p, Granularity::kFunctions);
  const CallTree tree = call_tree(p, groups, sum_by_site(p, sample_weights(p, {})));
  std::vector<std::string> path_of(tree.nodes.size());
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const TreeNode& node = tree.nodes[i];
    path_of[i] = path_of[node.parent] + ";" + groups.name(node.group).text;
    made[path_of[i]] = {node.self, node.total};
    for (size_t c = 1; c < node.child_count; ++c)
      EXPECT_GE(tree.nodes[tree.children(static_cast<uint32_t>(i))[c - 1]].total,
                tree.nodes[tree.children(static_cast<uint32_t>(i))[c]].total);
  }
  auto is_nothing = [](const auto& row) { return row.second == std::pair<int64_t, int64_t>(); };
  std::erase_if(plain, is_nothing);
  std::erase_if(made, is_nothing);
  EXPECT_EQ(made, plain);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomViews, testing::Range(1u, 21u));

}  // namespace
}  // namespace cprof::analyze
