#include "event/group_deltas.h"

#include <gtest/gtest.h>

namespace cprof::event {
namespace {

using Values = std::vector<GroupValue>;

class Groups : public testing::Test {
 protected:
  Groups() {
    for (GroupDeltas* deltas : {&by_thread, &by_cpu}) {
      deltas->add_event(10, 0);
      deltas->add_event(11, 1);
      deltas->add_event(12, 2);
    }
  }
  static Sample sample(int32_t tid) { return {.time_ns = 5, .task = {7, tid}, .cpu = 3, .metric = 0, .period = 99}; }

  GroupDeltas by_thread, by_cpu{true};
};

TEST_F(Groups, EachEventWeighsWhatItCountedSinceTheSampleBefore) {
  Sample first = sample(7), second = sample(7);
  auto others = by_thread.expand(first, Values{{10, 1000}, {11, 4}, {12, 0}});
  EXPECT_EQ(first.period, 1000u);
  ASSERT_EQ(others.size(), 1u) << "an event that counted nothing has no sample";
  EXPECT_EQ(others[0].metric, 1u);
  EXPECT_EQ(others[0].period, 4u);
  EXPECT_EQ(others[0].task, first.task);
  EXPECT_EQ(others[0].time_ns, 5u);
  EXPECT_TRUE(others[0].repeats_stack);
  others = by_thread.expand(second, Values{{10, 2500}, {11, 4}, {12, 6}});
  EXPECT_EQ(second.period, 1500u);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].metric, 2u);
  EXPECT_EQ(others[0].period, 6u);
}

TEST_F(Groups, ThreadsCountForThemselvesACpuForAll) {
  Sample a = sample(7), b = sample(8);
  by_thread.expand(a, Values{{10, 1000}});
  by_thread.expand(b, Values{{10, 300}});
  EXPECT_EQ(b.period, 300u);
  by_cpu.expand(a, Values{{10, 1000}});
  by_cpu.expand(b, Values{{10, 1300}});
  EXPECT_EQ(b.period, 300u);
}

TEST_F(Groups, ANewThreadOfAnOldNumberStartsAtNothing) {
  Sample old = sample(7), fresh = sample(7), reused = sample(7);
  by_thread.expand(old, Values{{10, 1000}});
  by_thread.thread_ended(7);
  by_thread.expand(fresh, Values{{10, 1200}});
  EXPECT_EQ(fresh.period, 1200u);
  by_thread.expand(reused, Values{{10, 200}});
  EXPECT_EQ(reused.period, 200u) << "its end was lost";
}

TEST_F(Groups, UnknownEventsAreLeftOut) {
  Sample s = sample(7);
  EXPECT_TRUE(by_thread.expand(s, Values{{77, 5}}).empty());
  EXPECT_EQ(s.period, 99u);
  EXPECT_EQ(by_thread.unknown(), 1u);
}

}  // namespace
}  // namespace cprof::event
