#include "profile/builder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "profile/validate.h"

namespace cprof::profile {
namespace {

Function named(ProfileBuilder& b, std::string_view name) {
  return {.name = b.intern(name), .system_name = b.intern(name)};
}

Line line_of(ProfileBuilder& b, std::string_view name, uint32_t line = 0) {
  return {.function = b.function(named(b, name)), .line = line};
}

LocationId frame(ProfileBuilder& b, std::string_view name) {
  const Line line = line_of(b, name);
  return b.named_location(MappingId(), FrameKind::kUser, {&line, 1});
}

TEST(Builder, InternsMappingsAndMergesWhatGrows) {
  ProfileBuilder b;
  Mapping m{.path = b.intern("/bin/x"), .start = 0x1000, .end = 0x2000, .file_offset = 0};
  const MappingId first = b.mapping(m);
  m.end = 0x5000;
  m.has_functions = true;
  EXPECT_EQ(b.mapping(m), first);
  EXPECT_EQ(b.profile().mappings[0].end, 0x5000u);
  EXPECT_TRUE(b.profile().mappings[0].has_functions);
  m.file_offset = 0x1000;
  EXPECT_NE(b.mapping(m), first);
  EXPECT_EQ(b.profile().mappings.size(), 2u);
}

TEST(Builder, LocationsDifferByEachPartOfTheirKey) {
  ProfileBuilder b;
  const MappingId m = b.mapping({.path = b.intern("/bin/x")});
  const Location base{.mapping = m, .address = 0x1010, .file_address = 0x10};
  Location other_kind = base, other_return = base, other_mapping = base, same = base;
  other_kind.kind = FrameKind::kKernel;
  other_return.is_return_address = true;
  other_mapping.mapping = b.mapping({.path = b.intern("/bin/y")});
  same.address = 0x777;
  std::set<LocationId> ids{b.location(base), b.location(other_kind), b.location(other_return),
                           b.location(other_mapping)};
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_EQ(b.location(same), b.location(base));
}

// Against a plain map: rows right behind their parent take another way than the others.
TEST(Builder, EverySiteIsMadeOnceWhateverTheOrder) {
  ProfileBuilder b;
  std::map<std::pair<CallSiteId, LocationId>, CallSiteId> known;
  std::vector<CallSiteId> sites{CallSiteId()};
  std::minstd_rand random(7);
  for (int i = 0; i < 20'000; ++i) {
    const CallSiteId parent = i % 3 ? sites.back() : sites[random() % sites.size()];
    const LocationId location(size_t{random() % 40});
    const size_t before = b.profile().sites.size();
    const CallSiteId site = b.site(parent, location);
    const auto [it, is_new] = known.try_emplace({parent, location}, site);
    ASSERT_EQ(it->second, site);
    ASSERT_EQ(is_new, b.profile().sites.size() > before);
    ASSERT_EQ(b.profile().sites[site.index()].parent, parent);
    ASSERT_EQ(b.profile().sites[site.index()].location, location);
    if (sites.size() < 2000) sites.push_back(site);
  }
}

TEST(Builder, RecentLabelSetsAreFoundWhileTheyAreRecent) {
  ProfileBuilder b;
  const auto set = [&](int64_t number) {
    const Label label{.key = b.intern("id"), .number = number, .is_number = true};
    return b.recent_label_set({&label, 1});
  };
  const LabelSetId first = set(1);
  EXPECT_EQ(set(1), first);
  EXPECT_NE(set(2), first);
  EXPECT_FALSE(b.recent_label_set({}).valid());
  for (int64_t i = 0; i < 100'000; ++i) EXPECT_EQ(b.profile().labels_of(set(i))[0].number, i);
}

TEST(Builder, SetLinesNamesALocationAndCanRenameIt) {
  ProfileBuilder b;
  const MappingId m = b.mapping({.path = b.intern("/bin/x")});
  const LocationId id = b.location({.mapping = m, .address = 1, .file_address = 1});
  EXPECT_TRUE(b.profile().lines_of(id).empty());
  const std::vector<Line> two{line_of(b, "inlined", 3), line_of(b, "outer", 9)};
  b.set_lines(id, two);
  ASSERT_EQ(b.profile().lines_of(id).size(), 2u);
  EXPECT_EQ(b.profile().lines_of(id)[1].line, 9u);
  EXPECT_TRUE(b.profile().mappings[0].has_inline_frames);
  EXPECT_TRUE(b.profile().mappings[0].has_line_numbers);
  EXPECT_FALSE(b.profile().mappings[0].has_filenames);
  const size_t stored = b.profile().lines.size();
  b.set_lines(id, {&two[1], 1});
  EXPECT_EQ(b.profile().lines.size(), stored) << "a shorter list is written over the longer one";
  EXPECT_EQ(b.profile().lines_of(id)[0].line, 9u);
}

TEST(Builder, StacksShareSitesAndDepthCounts) {
  ProfileBuilder b;
  const LocationId main = frame(b, "main"), f = frame(b, "f"), g = frame(b, "g");
  const CallSiteId mf = b.stack(std::vector{main, f});
  const CallSiteId mfg = b.stack(std::vector{main, f, g});
  EXPECT_EQ(b.stack(std::vector{main, f}), mf);
  EXPECT_EQ(b.stack(std::vector{main, f, g}), mfg);
  EXPECT_EQ(b.site(mf, g), mfg);
  EXPECT_NE(b.stack(std::vector{f}), mf);
  EXPECT_FALSE(b.stack({}).valid());
  EXPECT_EQ(b.stack(std::vector{main}), b.profile().sites[mf.index()].parent);
  EXPECT_EQ(b.profile().sites[mfg.index()].depth, 2u);
  EXPECT_EQ(b.profile().sites.size(), 4u);
  EXPECT_TRUE(validate(b.take()));
}

TEST(Builder, RecursionIsKeptLevelByLevel) {
  ProfileBuilder b;
  const LocationId f = frame(b, "f");
  const std::vector<LocationId> deep(50'000, f);
  const CallSiteId leaf = b.stack(deep);
  const Profile p = b.take();
  EXPECT_EQ(p.sites[leaf.index()].depth, 49'999u);
  EXPECT_TRUE(validate(p));
}

TEST(Builder, NamedLocationsGetAddressesThatNobodyElseHas) {
  ProfileBuilder b;
  const MappingId jit = b.mapping({.path = b.intern("[jit]")});
  const MappingId file = b.mapping({.path = b.intern("/bin/x"), .start = 0x1000, .end = 0x9000});
  const Line f = line_of(b, "f", 1), g = line_of(b, "f", 2);
  const LocationId a = b.named_location(jit, FrameKind::kJit, {&f, 1});
  EXPECT_EQ(b.named_location(jit, FrameKind::kJit, {&f, 1}), a);
  EXPECT_NE(b.named_location(jit, FrameKind::kJit, {&g, 1}), a);
  EXPECT_NE(b.named_location(jit, FrameKind::kUser, {&f, 1}), a);
  b.named_location(file, FrameKind::kUser, {&f, 1});
  b.location({.mapping = file, .address = 0x1001, .file_address = 1});
  b.location({.mapping = file, .address = 0x1002, .file_address = 2});
  const Profile p = b.take();
  std::set<std::pair<MappingId, uint64_t>> addresses;
  for (const Location& l : p.locations) {
    EXPECT_NE(l.address, 0u);
    EXPECT_TRUE(addresses.emplace(l.mapping, l.address).second) << l.address;
  }
  EXPECT_TRUE(validate(p));
}

TEST(Builder, LabelSetsAreInternedByContent) {
  ProfileBuilder b;
  const std::vector<Label> labels{{.key = b.intern("k"), .text = b.intern("v")},
                                  {.key = b.intern("size"), .number = 7, .unit = b.intern("bytes"), .is_number = true}};
  const LabelSetId id = b.label_set(labels);
  EXPECT_EQ(b.label_set(labels), id);
  EXPECT_NE(b.label_set({labels.data(), 1}), id);
  EXPECT_FALSE(b.label_set({}).valid());
}

TEST(Builder, AggregatesSumPerKeyAndStopAtTheLimit) {
  ProfileBuilder b;
  const CallSiteId site = b.stack(std::vector{frame(b, "f")});
  const MetricId metric = b.add_metric("samples", "count");
  b.add_aggregate({.site = site, .metric = metric, .value = 3});
  b.add_aggregate({.site = site, .metric = metric, .value = -1});
  b.add_aggregate({.site = CallSiteId(), .metric = metric, .value = 5});
  ASSERT_EQ(b.profile().aggregates.size(), 2u);
  EXPECT_EQ(b.profile().aggregates[0].value, 2);
  b.add_aggregate({.site = site, .metric = metric, .value = INT64_MAX});
  const Profile p = b.take();
  EXPECT_EQ(p.aggregates[0].value, INT64_MAX);
  EXPECT_EQ(p.diagnostics.count("value_overflow"), 1u);
}

TEST(Builder, TakeSortsByTimeAndKeepsTheOrderOfEqualTimes) {
  ProfileBuilder b;
  const ThreadId t = b.add_thread(b.add_process(1, "p"), 1, "t");
  const MetricId m = b.add_metric("cpu-clock", "nanoseconds", 0, true);
  for (auto [time, weight] : {std::pair{5, 1}, {3, 2}, {4, 3}, {3, 4}})
    b.add_sample({.time_ns = uint64_t(time), .weight = weight, .thread = t, .metric = m});
  b.profile().on_cpu = {{.thread = t, .start_ns = 9, .end_ns = 10}, {.thread = t, .start_ns = 1, .end_ns = 2}};
  const Profile p = b.take();
  std::vector<int64_t> order;
  for (const Sample& s : p.samples) order.push_back(s.weight);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 4, 3, 1}));
  EXPECT_EQ(p.on_cpu[0].start_ns, 1u);
  EXPECT_TRUE(validate(p));
}

TEST(StackEnd, EveryReasonHasItsOwnNameAndSentence) {
  std::set<std::string_view> names, sentences;
  for (size_t i = 0; i < static_cast<size_t>(StackEnd::kCount); ++i) {
    names.insert(name_of(StackEnd(i)));
    sentences.insert(description_of(StackEnd(i)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(StackEnd::kCount));
  EXPECT_EQ(sentences.size(), static_cast<size_t>(StackEnd::kCount));
  EXPECT_NE(description_of(StackEnd::kTruncatedSnapshot).find("--stack-size"), std::string_view::npos);
  EXPECT_FALSE(is_incomplete(StackEnd::kNotUnwound));
  EXPECT_TRUE(is_incomplete(StackEnd::kBadPc));
}

Profile small() {
  ProfileBuilder b;
  const ThreadId t = b.add_thread(b.add_process(1, "p"), 1, "t");
  const MetricId m = b.add_metric("cpu-clock", "nanoseconds", 0, true);
  const CallSiteId s = b.stack(std::vector{frame(b, "main"), frame(b, "f")});
  b.add_sample({.time_ns = 1, .thread = t, .site = s, .metric = m});
  b.add_sample({.time_ns = 2, .thread = t, .metric = m});
  return b.take();
}

TEST(Validate, FindsEachBrokenPromise) {
  ASSERT_TRUE(validate(small()));
  auto broken = [](auto&& damage) {
    Profile p = small();
    damage(p);
    auto result = validate(p);
    return result ? std::string("nothing found") : result.error().message;
  };
  EXPECT_EQ(broken([](Profile& p) { p.samples[1].site = CallSiteId(9u); }), "samples[1]: site 9 of 2");
  EXPECT_EQ(broken([](Profile& p) { p.samples[0].time_ns = 7; }), "samples[1]: earlier than the sample before it");
  EXPECT_EQ(broken([](Profile& p) { p.samples[0].labels = LabelSetId(0u); }), "samples[0]: labels 0 of 0");
  EXPECT_EQ(broken([](Profile& p) { p.sites[0].parent = CallSiteId(1u); }),
            "sites[0]: parent 1 does not come before it");
  EXPECT_EQ(broken([](Profile& p) { p.sites[1].depth = 4; }), "sites[1]: depth is not its parent's + 1");
  EXPECT_EQ(broken([](Profile& p) { p.locations[1].line_count = 9; }), "locations[1]: lines out of range");
  EXPECT_EQ(broken([](Profile& p) { p.lines[0].function = FunctionId(); }), "lines[0]: no function");
  EXPECT_EQ(broken([](Profile& p) { p.label_sets.emplace_back(0, 1); }), "label_sets[0]: labels out of range");
  EXPECT_EQ(broken([](Profile& p) { p.threads[0].process = ProcessId(3u); }), "threads[0]: process 3 of 1");
}

}  // namespace
}  // namespace cprof::profile
