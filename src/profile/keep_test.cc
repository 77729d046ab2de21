#include "profile/keep.h"

#include <gtest/gtest.h>

#include "profile/validate.h"

namespace cprof::profile {
namespace {

// Two threads; the first ran a/b until 100, the second a/c from 200 on.
ProfileBuilder two_threads() {
  ProfileBuilder b;
  b.profile().run.start_ns = 10;
  b.profile().run.start_realtime_ns = 1'000;
  MetricId clock = b.add_metric("cpu-clock", "nanoseconds", 5, true);
  ProcessId process = b.add_process(7, "app");
  ThreadId early = b.add_thread(process, 7, "early"), late = b.add_thread(process, 8, "late");
  MappingId old_file = b.mapping({.path = b.intern("/lib/old"), .start = 0x1000}), file = b.mapping({.path = b.intern("/lib/new"), .start = 0x2000});
  LocationId a = b.location({.mapping = file, .address = 1, .file_address = 1}), only_b = b.location({.mapping = old_file, .file_address = 2}),
             only_c = b.location({.mapping = file, .file_address = 3});
  CallSiteId root = b.site({}, a), before = b.site(root, only_b), after = b.site(root, only_c);
  for (uint64_t t = 20; t <= 100; t += 20) b.add_sample({.time_ns = t, .weight = 5, .thread = early, .site = before, .metric = clock});
  for (uint64_t t = 200; t <= 300; t += 20) b.add_sample({.time_ns = t, .weight = 5, .thread = late, .site = after, .metric = clock});
  b.profile().on_cpu = {{early, 15, 100, 0, false}, {late, 150, 320, 0, false}};
  b.profile().diagnostics.add("lost_records", Severity::kDataLoss, "lost", 3);
  return b;
}

TEST(Keep, WhatNobodyUsesAnyMoreIsGone) {
  ProfileBuilder b = two_threads();
  Renumbering map = keep_since(b, 200);
  Profile& p = b.profile();
  auto valid = validate(p);
  ASSERT_TRUE(valid) << valid.error().message;
  EXPECT_EQ(p.samples.size(), 6u);
  EXPECT_EQ(p.sites.size(), 2u);
  EXPECT_EQ(p.locations.size(), 2u);
  ASSERT_EQ(p.mappings.size(), 1u);
  EXPECT_EQ(p.text(p.mappings[0].path), "/lib/new");
  ASSERT_EQ(p.threads.size(), 1u);
  EXPECT_EQ(p.text(p.threads[0].name), "late");
  ASSERT_EQ(p.on_cpu.size(), 1u);
  EXPECT_EQ(p.on_cpu[0].start_ns, 200u) << "cut at the beginning";
  for (std::string_view gone : {"early", "/lib/old"})
    for (size_t i = 0; i < p.strings.size(); i++) EXPECT_NE(p.strings[StringId(i)], gone);
  EXPECT_EQ(p.run.start_ns, 200u);
  EXPECT_EQ(p.run.start_realtime_ns, 1'190u);
  EXPECT_EQ(p.diagnostics.count("lost_records"), 3u);
  EXPECT_FALSE(map.threads[0].valid());
  EXPECT_EQ(map.threads[1], ThreadId(size_t{0}));
  EXPECT_FALSE(map.sites[1].valid());
  EXPECT_EQ(p.sites[map.sites[2].index()].parent, map.sites[0]);
  EXPECT_FALSE(map.locations[1].valid());
}

TEST(Keep, WaitsAreCutAndKeepTheirStacksAndWakers) {
  ProfileBuilder b = two_threads();
  const ThreadId early{size_t{0}}, late{size_t{1}};
  const CallSiteId before{size_t{1}}, after{size_t{2}};
  b.profile().off_cpu = {{.thread = early, .start_ns = 20, .end_ns = 30, .site = after},
                         {.thread = late, .start_ns = 150, .end_ns = 250, .woken_ns = 160, .site = before, .waker = early}};
  Renumbering map = keep_since(b, 200);
  const Profile& p = b.profile();
  ASSERT_TRUE(validate(p));
  ASSERT_EQ(p.off_cpu.size(), 1u);
  EXPECT_EQ(p.off_cpu[0].start_ns, 200u);
  EXPECT_EQ(p.off_cpu[0].woken_ns, 200u) << "runnable from the window's beginning";
  EXPECT_EQ(p.off_cpu[0].site, map.sites[before.index()]);
  EXPECT_TRUE(p.off_cpu[0].site.valid());
  EXPECT_EQ(p.text(p.threads[p.off_cpu[0].waker.index()].name), "early");
}

TEST(Keep, TheBuilderGoesOnWithTheSameRows) {
  ProfileBuilder b = two_threads();
  Renumbering map = keep_since(b, 200);
  size_t sites = b.profile().sites.size(), locations = b.profile().locations.size();
  LocationId again = b.location({.mapping = map.mappings[1], .file_address = 3});
  EXPECT_EQ(again, map.locations[2]);
  EXPECT_EQ(b.site(map.sites[0], again), map.sites[2]);
  EXPECT_EQ(b.profile().sites.size(), sites);
  EXPECT_EQ(b.profile().locations.size(), locations);
}

TEST(Keep, SitesInUseElsewhereStay) {
  ProfileBuilder b = two_threads();
  CallSiteId before(size_t{1});
  Renumbering map = keep_since(b, 1'000, std::span(&before, 1));
  EXPECT_TRUE(b.profile().samples.empty());
  EXPECT_TRUE(map.sites[1].valid());
  EXPECT_FALSE(map.sites[2].valid());
  EXPECT_EQ(b.profile().sites.size(), 2u);
  EXPECT_TRUE(validate(b.profile()));
}

TEST(Keep, AllOfItIsTheSame) {
  ProfileBuilder b = two_threads();
  keep_since(b, 0);
  const Profile& p = b.profile();
  EXPECT_EQ(p.samples.size(), 11u);
  EXPECT_EQ(p.sites.size(), 3u);
  EXPECT_EQ(p.run.start_ns, 10u);
  EXPECT_EQ(p.on_cpu[0].start_ns, 15u);
}

TEST(Keep, LabelsAndValuesComeAlong) {
  ProfileBuilder b = two_threads();
  Label label{.key = b.intern("request"), .text = b.intern("slow")};
  b.add_sample({.time_ns = 500, .thread = ThreadId(size_t{1}), .metric = MetricId(size_t{0}), .labels = b.label_set(std::span(&label, 1))});
  b.add_aggregate({.site = CallSiteId(size_t{1}), .metric = MetricId(size_t{0}), .value = 9});
  keep_since(b, 400);
  const Profile& p = b.profile();
  ASSERT_TRUE(validate(p));
  ASSERT_EQ(p.samples.size(), 1u);
  EXPECT_EQ(p.text(p.labels[p.label_sets[p.samples[0].labels.index()].first].text), "slow");
  ASSERT_EQ(p.aggregates.size(), 1u);
  EXPECT_EQ(p.sites[p.aggregates[0].site.index()].depth, 1u);
}

TEST(Keep, TracksKeepTheirNumbersAndWhatLiesOnThem) {
  ProfileBuilder b = two_threads();
  const ProcessId process{size_t{0}};
  const ThreadId early{size_t{0}}, late{size_t{1}};
  b.profile().tracks = {{.name = b.intern("queue"), .unit = b.intern("count"), .process = process}, {.name = b.intern("io"), .thread = early}};
  b.profile().slices = {{.thread = late, .name = b.intern("old"), .start_ns = 20, .duration_ns = 5},
                        {.name = b.intern("read"), .start_ns = 190, .duration_ns = 20, .track = TrackId(size_t{1})},
                        {.thread = late, .name = b.intern("forever"), .start_ns = 30, .is_open = true}};
  b.profile().marks = {{.thread = late, .name = b.intern("before"), .time_ns = 150}, {.thread = late, .name = b.intern("after"), .time_ns = 250}};
  b.profile().counters = {{TrackId(size_t{0}), 100, 1}, {TrackId(size_t{0}), 200, 2}};
  keep_since(b, 200);
  const Profile& p = b.profile();
  auto valid = validate(p);
  ASSERT_TRUE(valid) << valid.error().message;
  ASSERT_EQ(p.tracks.size(), 2u);
  EXPECT_EQ(p.text(p.tracks[0].unit), "count");
  EXPECT_EQ(p.text(p.threads[p.tracks[1].thread.index()].name), "early") << "a track keeps its thread";
  ASSERT_EQ(p.slices.size(), 2u);
  EXPECT_EQ(p.text(p.slices[0].name), "read");
  EXPECT_EQ(p.text(p.slices[1].name), "forever");
  ASSERT_EQ(p.marks.size(), 1u);
  EXPECT_EQ(p.text(p.marks[0].name), "after");
  ASSERT_EQ(p.counters.size(), 1u);
  EXPECT_EQ(p.counters[0].value, 2);
}

}  // namespace
}  // namespace cprof::profile
