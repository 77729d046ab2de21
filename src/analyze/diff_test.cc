// Comparisons, neighbours and code values over profiles made by hand.
#include "analyze/diff.h"

#include <gtest/gtest.h>

#include <map>

#include "analyze/code_values.h"
#include "analyze/frames.h"
#include "analyze/neighbours.h"
#include "analyze/shares.h"
#include "analyze/top.h"
#include "profile/builder.h"
#include "profile/validate.h"

namespace cprof::analyze {
namespace {

using namespace profile;
using Stacks = std::vector<std::pair<std::vector<std::string>, int64_t>>;

Profile folded(const Stacks& stacks, std::string_view module = {}, std::string_view file = {}, uint32_t start_line = 0) {
  ProfileBuilder b;
  const MetricId samples = b.add_metric("samples", "count");
  MappingId mapping;
  if (!module.empty()) mapping = b.mapping({.path = b.intern(module), .start = 1, .end = 0x100000});
  for (const auto& [names, value] : stacks) {
    std::vector<LocationId> stack;
    for (const std::string& name : names) {
      const StringId text = b.intern(name);
      const Line line{.function = b.function({.name = text, .system_name = text, .file = b.intern(file), .start_line = start_line})};
      stack.push_back(b.named_location(mapping, FrameKind::kUser, {&line, 1}));
    }
    b.add_aggregate({.site = b.stack(stack), .metric = samples, .value = value});
  }
  return b.take();
}

struct Compared {
  Compared(const Profile& before, const Profile& after, DiffOptions options = {}) {
    DiffSide sides[2];
    for (int i = 0; i < 2; ++i) {
      const Profile& p = i == 0 ? before : after;
      sides[i] = {&p, sample_weights(p, {}), {}};
      sides[i].counts = sample_counts(p, {}, sides[i].values);
    }
    stacks = joined(sides[0], sides[1], Granularity::kFunctions);
    EXPECT_TRUE(validate(stacks.profile));
    diff = analyze::diff(stacks, sides[0], sides[1], options);
    for (const DiffRow& row : diff.rows) rows[row.name] = row;
  }
  Joined stacks;
  Diff diff;
  std::map<std::string, DiffRow> rows;
};

// UI-02.
TEST(Diff, BothDirectionsTellTheSame) {
  const Profile base = folded({{{"base_only"}, 50}, {{"both1"}, 25}, {{"both2"}, 25}});
  const Profile now = folded({{{"both1"}, 25}, {{"both2"}, 50}, {{"changed_only"}, 125}});
  const Compared forth(base, now, {.normalize = Normalize::kNone}), back(now, base, {.normalize = Normalize::kNone});
  EXPECT_EQ(forth.rows.at("both2").before, 25);
  EXPECT_EQ(forth.rows.at("both2").after, 50);
  EXPECT_EQ(forth.rows.at("both2").delta(), 25);
  EXPECT_EQ(back.rows.at("both2").delta(), -25);
  EXPECT_EQ(forth.rows.at("both2").noise, back.rows.at("both2").noise);
  EXPECT_EQ(forth.rows.at("base_only").change, Change::kGone);
  EXPECT_EQ(forth.rows.at("changed_only").change, Change::kNew);
  EXPECT_EQ(back.rows.at("base_only").change, Change::kNew);
  EXPECT_EQ(forth.diff.rows.front().name, "changed_only") << "the largest change first";
}

// WGT-11.
TEST(Diff, AnotherRateIsNoChange) {
  const Profile fast = folded({{{"main", "a"}, 6000}, {{"main", "b"}, 3000}, {{"main", "c"}, 1000}});
  const Profile slow = folded({{{"main", "a"}, 611}, {{"main", "b"}, 290}, {{"main", "c"}, 99}});
  const Compared by_total(fast, slow);
  for (const DiffRow& row : by_total.diff.rows) {
    EXPECT_EQ(row.change, Change::kWithinNoise) << row.name << " " << row.delta() << " " << row.noise;
    EXPECT_NEAR(row.scaled_before, static_cast<double>(row.after), 0.05 * static_cast<double>(row.after) + 1);
  }
  const Compared raw(fast, slow, {.normalize = Normalize::kNone});
  EXPECT_EQ(raw.rows.at("a").change, Change::kLess);
}

TEST(Diff, KnownRatesCountSamplesAlike) {
  Profile fast = folded({{{"a"}, 1000}}), slow = folded({{{"a"}, 100}});
  fast.run.period = 1'000'000;
  slow.run.period = 10'000'000;
  fast.run.period_unit = slow.run.period_unit = "nanoseconds";
  const DiffSide before{&fast, sample_weights(fast, {}), {}}, after{&slow, sample_weights(slow, {}), {}};
  EXPECT_DOUBLE_EQ(rate_scale(before, after), 0.1);
  fast.run.end_ns = 1'000'000'000;
  slow.run.end_ns = 2'000'000'000;
  EXPECT_DOUBLE_EQ(scale_of(before, after, Normalize::kTime), 0.2);
}

TEST(Diff, NoiseIsTwoDeviationsOfTheCounts) {
  const Profile before = folded({{{"a"}, 100}, {{"rest"}, 9900}}), after = folded({{{"a"}, 127}, {{"rest"}, 9873}}),
                far = folded({{{"a"}, 140}, {{"rest"}, 9860}});
  EXPECT_NEAR(Compared(before, after).rows.at("a").noise, 2 * std::sqrt(227.0), 0.01);
  EXPECT_EQ(Compared(before, after).rows.at("a").change, Change::kWithinNoise);
  EXPECT_EQ(Compared(before, far).rows.at("a").change, Change::kMore);
}

// UI-07: cycles per instruction.
TEST(Diff, RatiosOfTwoMetrics) {
  const Profile instructions = folded({{{"m", "f"}, 1000}, {{"m", "g"}, 400}, {{"m", "h"}, 300}});
  const Profile cycles = folded({{{"m", "f"}, 500}, {{"m", "g"}, 800}, {{"m", "h"}, 300}});
  const Compared c(instructions, cycles, {.normalize = Normalize::kNone});
  auto ratio = [&](const std::string& name) { return static_cast<double>(c.rows.at(name).after) / c.rows.at(name).scaled_before; };
  EXPECT_DOUBLE_EQ(ratio("f"), 0.5);
  EXPECT_DOUBLE_EQ(ratio("g"), 2);
  EXPECT_DOUBLE_EQ(ratio("h"), 1);
}

TEST(Diff, FunctionsMeetByNameAcrossBuildsAndFormats) {
  const Stacks stacks = {{{"main", "f"}, 10}};
  const Profile old = folded(stacks, "/v1/bin/app", "x.cc", 10), built = folded(stacks, "/v2/bin/app", "x.cc", 12), plain = folded(stacks);
  EXPECT_EQ(Compared(old, built).diff.rows.size(), 1u);
  EXPECT_EQ(Compared(old, plain).diff.rows.size(), 1u);
  EXPECT_EQ(Compared(old, built).rows.at("f").module, "app");
  EXPECT_EQ(Compared(old, built, {.by_total = true}).diff.rows.size(), 2u);
}

// UI-03.
TEST(Diff, ADifferenceHasNegativeValues) {
  const Profile before = folded({{{"p", "x"}, 5}, {{"p", "y"}, 3}, {{"q"}, 2}}), after = folded({{{"p", "x"}, 10}, {{"q"}, 2}});
  const Compared c(before, after, {.normalize = Normalize::kNone});
  const Profile p = difference(c.stacks, 1, "samples", "count");
  ASSERT_TRUE(validate(p));
  std::map<std::string, int64_t> sums;
  FrameWalker walker(p);
  for (const Aggregate& row : p.aggregates) sums[std::string(walker.frames(row.site).back().name)] += row.value;
  EXPECT_EQ(sums, (std::map<std::string, int64_t>{{"x", 5}, {"y", -3}}));
  const Groups groups(p, Granularity::kFunctions);
  const CallTree tree = call_tree(p, groups, sum_by_site(p, sample_weights(p, {})));
  EXPECT_EQ(tree.nodes[1].total, 2) << "the parent's net";
}

TEST(Shares, ValuesThatCancelOut) {
  const Profile p = folded({{{"p", "x"}, 5}, {{"p", "y"}, -5}});
  EXPECT_EQ(whole_of(sample_weights(p, {})), 10);
  EXPECT_EQ(whole_of(sample_weights(folded({{{"p"}, 10}, {{"q"}, -4}}), {})), 6);
}

TEST(Diff, StacksThatWereCutAndSamplesWithoutOne) {
  ProfileBuilder b;
  const MetricId clock = b.add_metric("cpu-clock", "nanoseconds", 1, true);
  const ThreadId thread = b.add_thread(b.add_process(1, "a"), 1, "a");
  const StringId f = b.intern("f");
  const Line line{.function = b.function({.name = f, .system_name = f})};
  const LocationId at = b.named_location({}, FrameKind::kUser, {&line, 1});
  b.add_sample({.thread = thread, .site = b.stack(std::vector{at}), .metric = clock, .end = StackEnd::kMaxDepth});
  b.add_sample({.thread = thread, .metric = clock});
  const Profile p = b.take();
  const Compared c(p, p);
  EXPECT_EQ(c.rows.at("f").after, 1);
  EXPECT_EQ(c.rows.at("[unknown]").after, 1);
  FrameWalker walker(c.stacks.profile);
  EXPECT_EQ(walker.frames(c.stacks.profile.aggregates[1].site).front().name, kTruncatedFrame);
}

TEST(Diff, FiftyThousandFrames) {
  std::vector<std::string> stack;
  for (int i = 0; i < 50'000; ++i) stack.push_back("f" + std::to_string(i % 7));
  const Profile p = folded({{stack, 9}});
  const Compared c(p, p, {.by_total = true});
  EXPECT_EQ(c.rows.at("f0").after, 9);
  EXPECT_EQ(c.stacks.profile.sites.size(), 50'000u);
}

Neighbourhood peek(const Profile& p, std::string_view name, std::map<std::string, int64_t>& callers,
                   std::map<std::string, int64_t>& callees) {
  const Groups groups(p, Granularity::kFunctions);
  const CallTree tree = call_tree(p, groups, sum_by_site(p, sample_weights(p, {})));
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < groups.size(); ++i)
    if (groups.name(i).text == name) wanted = i;
  const Neighbourhood found = neighbours_of(tree, {wanted}, groups.size()).front();
  for (const Neighbour& n : found.callers) callers[groups.name(n.group).text] = n.value;
  for (const Neighbour& n : found.callees) callees[groups.name(n.group).text] = n.value;
  return found;
}

TEST(Neighbours, RecursionCountsOncePerStack) {
  const Profile p = folded({{{"m", "f"}, 1}, {{"m", "f", "f", "g"}, 10}, {{"m", "g", "f", "g", "f"}, 100}, {{"f"}, 1000}});
  std::map<std::string, int64_t> callers, callees;
  const Neighbourhood found = peek(p, "f", callers, callees);
  EXPECT_EQ(found.total, 1111);
  EXPECT_EQ(found.self, 1101);
  EXPECT_EQ(found.as_root, 1000);
  EXPECT_EQ(callers, (std::map<std::string, int64_t>{{"m", 11}, {"f", 10}, {"g", 100}}));
  EXPECT_EQ(callees, (std::map<std::string, int64_t>{{"f", 10}, {"g", 110}}));
}

TEST(Neighbours, FiftyThousandFrames) {
  std::vector<std::string> stack;
  for (int i = 0; i < 50'000; ++i) stack.push_back("f" + std::to_string(i % 7));
  std::map<std::string, int64_t> callers, callees;
  EXPECT_EQ(peek(folded({{stack, 9}}), "f3", callers, callees).total, 9);
  EXPECT_EQ(callers, (std::map<std::string, int64_t>{{"f2", 9}}));
  EXPECT_EQ(callees, (std::map<std::string, int64_t>{{"f4", 9}}));
}

TEST(CodeValues, LinesAndPlaces) {
  ProfileBuilder b;
  const MetricId samples = b.add_metric("samples", "count");
  const MappingId app = b.mapping({.path = b.intern("/bin/app"), .start = 1, .end = 0x1000});
  auto line = [&](std::string_view name, uint32_t number) {
    const StringId text = b.intern(name);
    return Line{.function = b.function({.name = text, .system_name = text, .file = b.intern("x.cc"), .start_line = 3}), .line = number};
  };
  auto at = [&](uint64_t address, std::vector<Line> lines) {
    const LocationId id = b.location({.mapping = app, .address = address, .file_address = address});
    b.set_lines(id, lines);
    return id;
  };
  const LocationId f5 = at(1, {line("f", 5)}), f6 = at(2, {line("f", 6)}), g_in_f = at(3, {line("g", 20), line("f", 6)});
  b.add_aggregate({.site = b.stack(std::vector{f5, f5, f6}), .metric = samples, .value = 1});
  b.add_aggregate({.site = b.stack(std::vector{f5, g_in_f}), .metric = samples, .value = 10});
  const Profile p = b.take();
  const SiteTotals totals = sum_by_site(p, sample_weights(p, {}));
  const auto list = list_functions(p, totals, *Pattern::compile("^f$"));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].file, "x.cc");
  EXPECT_EQ(list[0].module, "app");
  EXPECT_EQ(list[0].value.self, 1);
  EXPECT_EQ(list[0].value.total, 11);
  ASSERT_EQ(list[0].lines.size(), 2u);
  EXPECT_EQ(list[0].lines[0].line, 5u);
  EXPECT_EQ(list[0].lines[0].value.total, 11) << "recursion counts once";
  EXPECT_EQ(list[0].lines[1].value.self, 1);
  EXPECT_EQ(list[0].lines[1].value.total, 11);
  const auto values = values_by_location(p, totals);
  EXPECT_EQ(values[f5.index()].total, 11);
  EXPECT_EQ(values[f6.index()].self, 1);
  EXPECT_EQ(values[g_in_f.index()].self, 10);
}

}  // namespace
}  // namespace cprof::analyze
