// Sums add up, equal code is one row, what must stay apart does.
#include "profile/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "profile/builder.h"
#include "profile/validate.h"

namespace cprof::profile {
namespace {

struct Named {
  std::string name, unit;
};

class Maker {
 public:
  explicit Maker(std::initializer_list<Named> metrics) {
    for (const auto& [name, unit] : metrics) b.add_metric(name, unit);
  }

  LocationId at(uint64_t offset, std::string_view name, uint64_t start = 0x400000) {
    const MappingId file = b.mapping({.path = b.intern("/bin/app"), .build_id = b.intern("aa"), .start = start, .end = start + 0x1000});
    const StringId text = b.intern(name);
    const Line line{.function = b.function({.name = text, .system_name = text, .file = b.intern("a.cc")}), .line = 7};
    const LocationId id = b.location({.mapping = file, .address = start + offset, .file_address = offset});
    b.set_lines(id, {&line, 1});
    return id;
  }
  LocationId named(std::string_view name) {
    const StringId text = b.intern(name);
    const Line line{.function = b.function({.name = text, .system_name = text})};
    return b.named_location({}, FrameKind::kUser, {&line, 1});
  }
  Maker& add(std::vector<LocationId> stack, std::vector<int64_t> values) {
    for (size_t i = 0; i < values.size(); ++i)
      b.add_aggregate({.site = b.stack(stack), .metric = MetricId(i), .value = values[i]});
    return *this;
  }

  ProfileBuilder b;
};

Profile merged(std::vector<Profile> profiles, MergeOptions options = {}) {
  std::vector<MergeInput> inputs;
  for (size_t i = 0; i < profiles.size(); ++i) inputs.push_back({std::move(profiles[i]), "p" + std::to_string(i)});
  Profile profile = merge(std::move(inputs), options);
  const auto valid = validate(profile);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  return profile;
}

template <typename... Profiles>
std::vector<Profile> list(Profiles&&... profiles) {
  std::vector<Profile> all;
  (all.push_back(std::move(profiles)), ...);
  return all;
}

std::string metrics_of(const Profile& p) {
  std::string names;
  for (const Metric& metric : p.metrics) names += std::string(p.text(metric.name)) + "/" + std::string(p.text(metric.unit)) + " ";
  return names;
}

// "root;leaf metric" -> sum
std::map<std::string, int64_t> sums(const Profile& p) {
  std::map<std::string, int64_t> result;
  for (const Aggregate& row : p.aggregates) {
    std::string path;
    for (CallSiteId at = row.site; at.valid(); at = p.sites[at.index()].parent) {
      std::string names;
      for (const Line& line : p.lines_of(p.sites[at.index()].location))
        names += std::string(p.text(p.functions[line.function.index()].name));
      path = names + ";" + path;
    }
    result[path + " " + std::string(p.text(p.metrics[row.metric.index()].name))] += row.value;
  }
  return result;
}

TEST(Merge, EqualStacksAddUpAndEqualCodeIsOneRow) {
  Maker a({{"samples", "count"}}), b({{"samples", "count"}});
  a.add({a.at(1, "main"), a.at(2, "f")}, {3});
  b.add({b.at(1, "main", 0x7000000), b.at(2, "f", 0x7000000)}, {4}).add({b.at(1, "main", 0x7000000), b.at(3, "g", 0x7000000)}, {1});
  const Profile p = merged(list(a.b.take(), b.b.take()));
  EXPECT_EQ(sums(p), (std::map<std::string, int64_t>{{"main;f; samples", 7}, {"main;g; samples", 1}}));
  EXPECT_EQ(p.aggregates.size(), 2u);
  EXPECT_EQ(p.mappings.size(), 1u) << "the same build at another place";
  EXPECT_EQ(p.functions.size(), 3u);
  EXPECT_EQ(p.locations.size(), 3u);
  for (const Location& location : p.locations) EXPECT_EQ(location.address, 0x400000 + location.file_address);
  EXPECT_EQ(p.run.source, "p0, p1");
}

TEST(Merge, WithAnEmptyOneItIsTheOther) {
  Maker a({{"cpu", "nanoseconds"}});
  a.add({a.named("x"), a.named("y")}, {-5});
  a.b.profile().run.default_metric = a.b.intern("cpu");
  const Profile whole = a.b.take();
  for (int side = 0; side < 2; ++side) {
    Maker again({{"cpu", "nanoseconds"}}), none({{"samples", "count"}, {"cpu", "nanoseconds"}});
    again.add({again.named("x"), again.named("y")}, {-5});
    again.b.profile().run.default_metric = again.b.intern("cpu");
    std::vector<Profile> both;
    both.push_back(side == 0 ? again.b.take() : none.b.take());
    both.push_back(side == 0 ? none.b.take() : again.b.take());
    const Profile p = merged(std::move(both));
    EXPECT_EQ(sums(p), sums(whole));
    EXPECT_EQ(metrics_of(p), "cpu/nanoseconds ");
    EXPECT_EQ(p.text(p.run.default_metric), "cpu");
    ASSERT_EQ(p.locations.size(), whole.locations.size());
    for (size_t i = 0; i < p.locations.size(); ++i) EXPECT_EQ(p.locations[i].address, whole.locations[i].address);
  }
}

TEST(Merge, NamesWithoutAddressesMeetByName) {
  Maker a({{"samples", "count"}}), b({{"samples", "count"}});
  a.add({a.named("main"), a.named("f")}, {1});
  b.add({b.named("other"), b.named("main"), b.named("f")}, {2}).add({b.named("main"), b.named("f")}, {4});
  const Profile p = merged(list(a.b.take(), b.b.take()));
  EXPECT_EQ(sums(p), (std::map<std::string, int64_t>{{"main;f; samples", 5}, {"other;main;f; samples", 2}}));
  EXPECT_EQ(p.locations.size(), 3u);
  std::set<uint64_t> addresses;
  for (const Location& location : p.locations) EXPECT_TRUE(addresses.insert(location.address).second);
}

// PPROF-08: P1 has samples and cpu, P2 has cpu, P3 has them in another order.
TEST(Merge, MetricsMeetByNameAndPartialOnesAreLeftOut) {
  auto make = [](std::initializer_list<Named> metrics, std::vector<int64_t> values) {
    Maker m(metrics);
    m.add({m.named("f")}, std::move(values));
    return m.b.take();
  };
  const Named samples{"samples", "count"}, cpu{"cpu", "nanoseconds"};
  const Profile p = merged(list(make({samples, cpu}, {2, 20}), make({cpu}, {30})));
  EXPECT_EQ(metrics_of(p), "cpu/nanoseconds ");
  EXPECT_EQ(sums(p).at("f; cpu"), 50);
  const auto note = p.diagnostics.entries().find("merge_metric_left_out");
  ASSERT_NE(note, p.diagnostics.entries().end());
  EXPECT_EQ(note->second.example, "samples");

  const Profile ordered = merged(list(make({samples, cpu}, {2, 20}), make({cpu, samples}, {30, 3})));
  EXPECT_EQ(sums(ordered), (std::map<std::string, int64_t>{{"f; samples", 5}, {"f; cpu", 50}}));

  const Profile all = merged(list(make({samples, cpu}, {2, 20}), make({cpu}, {30})), {.keep_all_metrics = true});
  EXPECT_EQ(sums(all), (std::map<std::string, int64_t>{{"f; samples", 2}, {"f; cpu", 50}}));

  const Profile apart = merged(list(make({{"alloc", "bytes"}}, {7}), make({cpu}, {30})));
  EXPECT_EQ(sums(apart), (std::map<std::string, int64_t>{{"f; alloc", 7}, {"f; cpu", 30}}));

  const Profile units = merged(list(make({{"cpu", "milliseconds"}}, {2}), make({cpu}, {30})));
  EXPECT_EQ(sums(units).at("f; cpu"), 2'000'030);
  EXPECT_EQ(metrics_of(units), "cpu/nanoseconds ");
}

Profile timed(uint64_t start_ns, uint64_t realtime_ns, std::string host, std::vector<uint64_t> times) {
  ProfileBuilder b;
  const MetricId clock = b.add_metric("cpu-clock", "nanoseconds", 1000, true);
  const ThreadId thread = b.add_thread(b.add_process(10, "app", start_ns), 10, "app", start_ns);
  b.profile().run.start_ns = start_ns;
  b.profile().run.end_ns = times.back() + 1000;
  b.profile().run.start_realtime_ns = realtime_ns;
  b.profile().run.hostname = std::move(host);
  for (uint64_t t : times) b.add_sample({.time_ns = t, .weight = 1000, .thread = thread, .metric = clock});
  b.profile().off_cpu.push_back({.thread = thread, .start_ns = times.front() + 10, .end_ns = times.front() + 20});
  return b.take();
}

TEST(Merge, OneClockWhereBothAreKnown) {
  const Profile p = merged(list(timed(1'000'000, 50'000'000, "a", {1'000'000}), timed(9'000'000, 50'500'000, "b", {9'000'100})));
  ASSERT_EQ(p.samples.size(), 2u);
  EXPECT_EQ(p.samples[0].time_ns, 1'000'000u);
  EXPECT_EQ(p.samples[1].time_ns, 1'500'100u) << "half a millisecond after the first";
  EXPECT_EQ(p.threads.size(), 2u) << "the same numbers, but not the same threads";
  EXPECT_EQ(p.processes.size(), 2u);
  EXPECT_EQ(p.off_cpu.size(), 2u);
  EXPECT_EQ(p.run.start_ns, 1'000'000u);
  EXPECT_EQ(p.run.end_ns, 1'501'100u);
  EXPECT_FALSE(p.diagnostics.entries().contains("merge_clock_unknown"));
}

TEST(Merge, OneMachinesClockIsTakenAsItIs) {
  const Profile p = merged(list(timed(1'000'000, 50'000'000, "a", {1'000'000}), timed(2'000'000, 51'000'007, "a", {2'000'000})));
  EXPECT_EQ(p.samples[1].time_ns, 2'000'000u) << "real time was adjusted by 7 ns, the monotonic clock was not";
}

TEST(Merge, AnInputFromBeforeTheFirstDoesNotBeginBelowZero) {
  const Profile p = merged(list(timed(1'000, 50'000'000, "a", {1'000}), timed(7'000'000, 40'000'000, "b", {7'000'000})));
  ASSERT_EQ(p.samples.size(), 2u);
  EXPECT_EQ(p.samples[1].time_ns - p.samples[0].time_ns, 10'000'000u);
}

TEST(Merge, UnknownClocksStartTogetherAndItIsSaid) {
  const Profile p = merged(list(timed(1'000'000, 0, "", {1'000'000}), timed(9'000'000, 0, "", {9'000'000})));
  EXPECT_EQ(p.samples[1].time_ns, 1'000'000u);
  EXPECT_EQ(p.diagnostics.count("merge_clock_unknown"), 1u);
}

TEST(Merge, ScopesAsLabels) {
  Maker a({{"samples", "count"}}), b({{"samples", "count"}});
  a.add({a.named("f")}, {1});
  b.add({b.named("f")}, {2});
  const Profile p = merged(list(a.b.take(), b.b.take()), {.label_scopes = true});
  ASSERT_EQ(p.aggregates.size(), 2u);
  std::map<std::string, int64_t> by_scope;
  for (const Aggregate& row : p.aggregates) {
    const Label& label = p.labels[p.label_sets[row.labels.index()].first];
    EXPECT_EQ(p.text(label.key), "scope");
    by_scope[std::string(p.text(label.text))] = row.value;
  }
  EXPECT_EQ(by_scope, (std::map<std::string, int64_t>{{"p0", 1}, {"p1", 2}}));
}

class RandomMerge : public testing::TestWithParam<uint32_t> {};

TEST_P(RandomMerge, SumsAddUp) {
  std::mt19937 random(GetParam());
  std::map<std::string, int64_t> plain;
  std::vector<Profile> profiles;
  for (int n = 0; n < 4; ++n) {
    Maker m({{"samples", "count"}, {"cpu", "nanoseconds"}});
    const uint64_t start = 0x100000 * (1 + random() % 3);
    for (int i = 0; i < 100; ++i) {
      std::vector<LocationId> stack;
      std::string path;
      for (uint64_t depth = random() % 6; depth > 0; --depth) {
        const uint64_t offset = 1 + random() % 5;
        const std::string name = "f" + std::to_string(offset);
        stack.push_back(random() % 2 ? m.at(offset, name, start) : m.named(name));
        path += name + ";";
      }
      const auto count = static_cast<int64_t>(random() % 9), cpu = static_cast<int64_t>(random() % 1000) - 300;
      m.add(stack, {count, cpu});
      plain[path + " samples"] += count;
      plain[path + " cpu"] += cpu;
    }
    profiles.push_back(m.b.take());
  }
  EXPECT_EQ(sums(merged(std::move(profiles))), plain);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMerge, testing::Range(1u, 11u));

}  // namespace
}  // namespace cprof::profile
