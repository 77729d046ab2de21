#include "uprobe/call_slices.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "profile/validate.h"
#include "uprobe/stacks_for_tests.h"

namespace cprof::uprobe {
namespace {

uprobe_call call(uint32_t function, uint64_t start, uint64_t end, uint32_t how = UPROBE_FINISHED, uint64_t latency = 0) {
  uprobe_call made{.start_ns = start, .end_ns = end, .latency_ns = latency ? latency : end - start - 10, .pid = 7, .tid = 8,
                   .function = function, .end = how, .comm = {}};
  strcpy(made.comm, "worker");
  return made;
}

std::vector<ProbedFunction> two_functions() {
  std::vector<ProbedFunction> functions(2);
  functions[0].name = "outer";
  functions[1].name = "inner";
  for (ProbedFunction& function : functions) function.entries.push_back({});
  return functions;
}

TEST(CallSlices, NestAsTheyWereWithoutWhatTheProbesAdded) {
  CallSlices slices("-- app");
  slices.add(call(1, 1200, 1300));
  slices.add(call(1, 1400, 1500, UPROBE_UNWOUND));
  slices.add(call(0, 1000, 2000, UPROBE_FINISHED, 900));
  slices.add(call(0, 3000, 4000, UPROBE_OPEN));
  const auto profile = slices.take(two_functions(), {.self_ns = {10, 20}}, {});
  ASSERT_TRUE(profile::validate(profile));
  ASSERT_EQ(profile.slices.size(), 4u);
  const auto& outer = profile.slices[0];
  EXPECT_EQ(profile.text(outer.name), "outer");
  EXPECT_EQ(outer.duration_ns, 990u);
  EXPECT_EQ(outer.start_ns, 1005u);
  const auto labels = profile.labels_of(outer.labels);
  ASSERT_EQ(labels.size(), 1u);  // its calls were probed, too
  EXPECT_EQ(profile.text(labels[0].key), "latency");
  EXPECT_EQ(labels[0].number, 900);
  EXPECT_EQ(profile.slices[1].depth, 1u);
  EXPECT_EQ(profile.slices[1].duration_ns, 90u);
  EXPECT_TRUE(profile.labels_of(profile.slices[1].labels).empty());
  EXPECT_EQ(profile.text(profile.labels_of(profile.slices[2].labels)[0].text), "unwinding");
  EXPECT_TRUE(profile.slices[3].is_open);
  EXPECT_EQ(profile.threads.size(), 1u);
  EXPECT_EQ(profile.text(profile.threads[0].name), "worker");
  EXPECT_FALSE(profile.aggregates.empty()) << "formats without slices have stacks";
}

TEST(CallSlices, StacksAreLabelsAndStandBelowTheCalls) {
  WalkedStacks walked;
  walked.add(8, 2000, {"main", "handle", "outer"});
  walked.add(8, 1300, {"main", "handle", "outer", "inner"});
  const CallStacks stacks(walked.take());
  CallSlices slices("x");
  slices.add(call(1, 1200, 1300));
  slices.add(call(0, 1000, 2000));
  slices.add(call(1, 3000, 3100, UPROBE_UNWOUND));
  slices.add(call(1, 4000, 4100));
  Diagnostics losses;
  const auto sums = slices.join(stacks, losses);
  EXPECT_EQ(sums.at(1)[0].frames, (std::vector<std::string>{"outer", "handle", "main"}));
  EXPECT_EQ(sums.at(1)[0].total_ns, 90u);
  EXPECT_EQ(losses.count("stacks_of_unwound_calls"), 1u);
  EXPECT_EQ(losses.count("stacks_missing"), 1u);
  const auto profile = slices.take(two_functions(), {.self_ns = {10, 20}}, {});
  ASSERT_TRUE(profile::validate(profile));
  EXPECT_EQ(profile.text(profile.labels_of(profile.slices[0].labels)[0].text), "main;handle");
  EXPECT_EQ(profile.text(profile.labels_of(profile.slices[1].labels)[0].text), "main;handle;outer");
  std::map<uint32_t, int64_t> by_depth;
  for (const auto& row : profile.aggregates) by_depth[profile.sites[row.site.index()].depth] += row.value;
  EXPECT_EQ(by_depth, (std::map<uint32_t, int64_t>{{0, 180}, {2, 900}, {3, 90}})) << "each call's own time, where it was called";
}

TEST(CallSlices, LossesGoIntoTheProfile) {
  Diagnostics losses;
  losses.add("calls_lost", Severity::kDataLoss, "lost", 3);
  CallSlices slices("x");
  EXPECT_EQ(slices.take({}, {}, losses).diagnostics.count("calls_lost"), 3u);
}

}  // namespace
}  // namespace cprof::uprobe
