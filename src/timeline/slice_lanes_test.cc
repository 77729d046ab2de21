#include "timeline/slice_lanes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "profile/validate.h"

namespace cprof::timeline {
namespace {

using profile::ProfileBuilder;
using profile::ThreadId;
using profile::TrackId;

struct Given {
  Given() {
    thread = builder.add_thread(builder.add_process(10, "app"), 10, "main");
  }
  void add(std::string_view name, uint64_t start, uint64_t end, TrackId track = {}) {
    builder.profile().slices.push_back({.thread = track.valid() ? ThreadId() : thread,
                                        .name = builder.intern(name),
                                        .start_ns = start,
                                        .duration_ns = end - start,
                                        .track = track});
  }
  TrackId track(std::string_view name) {
    auto& tracks = builder.profile().tracks;
    tracks.push_back({.name = builder.intern(name), .process = builder.profile().threads[thread.index()].process});
    return TrackId(tracks.size() - 1);
  }
  ProfileBuilder builder;
  ThreadId thread;
};

// "root;leaf" -> ns, summed over threads.
std::map<std::string, int64_t> stacks_of(const profile::Profile& profile) {
  std::map<std::string, int64_t> stacks;
  for (const profile::Aggregate& row : profile.aggregates) {
    std::string path;
    for (auto site = row.site; site.valid(); site = profile.sites[site.index()].parent) {
      const auto lines = profile.lines_of(profile.sites[site.index()].location);
      path = std::string(profile.text(profile.functions[lines[0].function.index()].name)) + (path.empty() ? "" : ";") + path;
    }
    stacks[path] += row.value;
  }
  return stacks;
}

TEST(SliceLanes, NestsWhateverTheOrder) {
  Given g;
  g.add("inner", 2, 5);
  g.add("outer", 0, 10);
  g.add("next", 10, 12);
  g.add("leaf", 3, 4);
  EXPECT_EQ(nest_slices(g.builder.profile()), 0u);
  const auto& profile = g.builder.profile();
  std::map<std::string, uint32_t> depths;
  for (const auto& slice : profile.slices) depths[std::string(profile.text(slice.name))] = slice.depth;
  EXPECT_EQ(depths, (std::map<std::string, uint32_t>{{"outer", 0}, {"inner", 1}, {"leaf", 2}, {"next", 0}}));
}

TEST(SliceLanes, OverlapsMoveToATrackBeside) {
  Given g;
  g.add("one", 0, 10);
  g.add("two", 5, 15);
  g.add("in two", 11, 14);
  auto jobs = g.track("jobs");
  g.add("a", 0, 10, jobs);
  g.add("b", 5, 15, jobs);
  EXPECT_EQ(nest_slices(g.builder.profile()), 2u);
  const auto profile = g.builder.take();
  ASSERT_TRUE(profile::validate(profile));
  std::map<std::string, std::string> lane_of;
  for (const auto& slice : profile.slices)
    lane_of[std::string(profile.text(slice.name))] =
        slice.track.valid() ? std::string(profile.text(profile.tracks[slice.track.index()].name)) : "thread";
  EXPECT_EQ(lane_of["one"], "thread");
  EXPECT_EQ(lane_of["two"], "overlapping (2)");
  EXPECT_EQ(lane_of["in two"], "thread");
  EXPECT_EQ(lane_of["a"], "jobs");
  EXPECT_EQ(lane_of["b"], "jobs (2)");
}

TEST(SliceLanes, StacksHaveSelfTimes) {
  Given g;
  g.add("main", 0, 100);
  g.add("work", 10, 40);
  g.add("read", 20, 25);
  g.add("work", 50, 60);
  nest_slices(g.builder.profile());
  add_slice_stacks(g.builder);
  const auto profile = g.builder.take();
  ASSERT_TRUE(profile::validate(profile));
  EXPECT_EQ(stacks_of(profile), (std::map<std::string, int64_t>{{"main", 60}, {"main;work", 35}, {"main;work;read", 5}}));
  EXPECT_EQ(profile.text(profile.metrics[0].name), kSliceMetric);
  EXPECT_EQ(profile.text(profile.metrics[0].unit), "nanoseconds");
}

TEST(SliceLanes, StacksOfTracksCountOnTheProcess) {
  Given g;
  g.add("job", 0, 10, g.track("jobs"));
  add_slice_stacks(g.builder);
  ASSERT_EQ(g.builder.profile().aggregates.size(), 1u);
  EXPECT_EQ(g.builder.profile().aggregates[0].thread, g.thread);
}

TEST(SliceLanes, NoStacksBesideSamples) {
  Given g;
  auto metric = g.builder.add_metric("samples", "count");
  g.builder.add_sample({.thread = g.thread, .metric = metric});
  g.add("f", 0, 10);
  add_slice_stacks(g.builder);
  EXPECT_TRUE(g.builder.profile().aggregates.empty());
  EXPECT_EQ(g.builder.profile().metrics.size(), 1u);
}

TEST(SliceLanes, DeepStacksAreCutAndNothingIsLost) {
  Given g;
  constexpr uint64_t kDepth = 3000;
  for (uint64_t i = 0; i < kDepth; ++i) g.add("f", i, 2 * kDepth - i);
  add_slice_stacks(g.builder);
  const auto profile = g.builder.take();
  EXPECT_EQ(profile.sites.size(), 1024u);
  EXPECT_EQ(profile.diagnostics.count("slices_too_deep"), kDepth - 1024);
  int64_t sum = 0;
  for (const auto& row : profile.aggregates) sum += row.value;
  EXPECT_EQ(sum, static_cast<int64_t>(2 * kDepth));
}

TEST(SliceLanes, ZeroDurationsAreSaid) {
  Given g;
  g.add("a", 5, 5);
  g.add("b", 7, 7);
  add_slice_stacks(g.builder);
  EXPECT_EQ(g.builder.profile().diagnostics.count("slices_without_duration"), 2u);
  EXPECT_EQ(stacks_of(g.builder.profile()), (std::map<std::string, int64_t>{{"a", 0}, {"b", 0}}));
}

// Each slice begins inside the one before and ends after it: as many lanes as slices.
TEST(SliceLanes, OverlapsWithoutEndStayCheap) {
  Given g;
  constexpr uint64_t kSlices = 100'000;
  for (uint64_t i = 0; i < kSlices; ++i) g.add("s", i, i + 1'000'000);
  const auto before = std::chrono::steady_clock::now();
  const auto lanes = slice_lanes(g.builder.profile());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  ASSERT_EQ(lanes.size(), kSlices);
  EXPECT_EQ(lanes.back().lane, kSlices - 1);
}

TEST(SliceStacks, StandOnTheStackThatTheyWereCalledFrom) {
  Given g;
  g.add("inner", 2, 5);
  g.add("outer", 0, 10);
  g.add("overlaps", 8, 12);
  auto& builder = g.builder;
  auto place = [&](std::string_view name) {
    const profile::Line line{builder.function({.name = builder.intern(name), .system_name = builder.intern(name)})};
    return builder.named_location({}, profile::FrameKind::kUser, {&line, 1});
  };
  const auto root = builder.site({}, place("main"));
  std::vector<profile::CallSiteId> callers = {{}, builder.site(root, place("handle")), root};  // of inner nobody knows
  EXPECT_EQ(nest_slices(builder.profile(), callers), 1u);
  add_slice_stacks(builder, callers);
  EXPECT_EQ(stacks_of(builder.profile()),
            (std::map<std::string, int64_t>{{"main;handle;outer", 7}, {"main;handle;outer;inner", 3}, {"main;overlaps", 4}}));
}

}  // namespace
}  // namespace cprof::timeline
