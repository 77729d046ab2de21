#include "uprobe/call_stacks.h"

#include <gtest/gtest.h>

#include "profile/builder.h"
#include "uprobe/stacks_for_tests.h"

namespace cprof::uprobe {
namespace {

using Frames = std::vector<std::string>;

TEST(CallStacks, AreFoundByThreadAndTheTimeOfTheCallsEnd) {
  WalkedStacks walked;
  walked.add(8, 2000, {"main", "handle", "slow"});
  walked.add(9, 2000, {"start", "slow"});
  walked.add(8, 3000, {"main", "slow"}, profile::StackEnd::kNoMapping);
  const CallStacks stacks(walked.take());
  const auto one = stacks.find(8, 2000), other = stacks.find(9, 2000), cut = stacks.find(8, 3000);
  ASSERT_TRUE(one && other && cut);
  EXPECT_EQ(stacks.frames(one->callers), (Frames{"handle", "main"}));
  EXPECT_EQ(stacks.frames(other->callers), (Frames{"start"}));
  EXPECT_EQ(cut->end, profile::StackEnd::kNoMapping);
  EXPECT_FALSE(stacks.find(9, 3000));
  EXPECT_FALSE(stacks.find(8, 2001));
}

TEST(CallStacks, OneThatEndsAtTheFunctionItselfHasNoCallers) {
  WalkedStacks walked;
  walked.add(8, 2000, {"slow"}, profile::StackEnd::kUnreadableMemory);
  walked.add(8, 3000, {}, profile::StackEnd::kNotUnwound);
  const CallStacks stacks(walked.take());
  for (uint64_t time : {2000, 3000}) {
    ASSERT_TRUE(stacks.find(8, time));
    EXPECT_TRUE(stacks.frames(stacks.find(8, time)->callers).empty());
  }
}

TEST(CallStacks, FrequentOnesComeFirstAndEqualNamesAreOne) {
  WalkedStacks walked;
  walked.add(8, 1000, {"main", "rare", "slow"});
  walked.add(8, 2000, {"main", "often", "slow"});
  walked.add(8, 3000, {"main", "often", "slow"}, profile::StackEnd::kComplete, 1);  // called elsewhere in it
  const CallStacks stacks(walked.take());
  CallStackSums sums;
  sums.add(3, *stacks.find(8, 1000), 500);
  sums.add(3, *stacks.find(8, 2000), 20);
  sums.add(3, *stacks.find(8, 3000), 30);
  sums.add(4, *stacks.find(8, 1000), 7);
  EXPECT_NE(stacks.find(8, 2000)->callers, stacks.find(8, 3000)->callers);
  const auto by_name = sums.by_name(stacks);
  ASSERT_EQ(by_name.size(), 2u);
  const auto& slow = by_name.at(3);
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0].frames, (Frames{"often", "main"}));
  EXPECT_EQ(std::pair(slow[0].calls, slow[0].total_ns), std::pair(uint64_t{2}, uint64_t{50}));
  EXPECT_EQ(slow[1].frames, (Frames{"rare", "main"}));
  EXPECT_EQ(by_name.at(4)[0].total_ns, 7u);
}

}  // namespace
}  // namespace cprof::uprobe
