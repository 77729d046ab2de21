#include "symbolize/interval_map.h"

#include <gtest/gtest.h>

#include <random>

namespace cprof::symbolize {
namespace {

TEST(IntervalMap, AnEmptyMapFindsNothing) {
  EXPECT_EQ(IntervalMap().find(0), IntervalMap::kNone);
  EXPECT_EQ(IntervalMap({{5, 5, 0, 0}, {9, 3, 0, 1}}).find(5), IntervalMap::kNone);
}

TEST(IntervalMap, AgreesWithPaintingByHand) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; round++) {
    std::vector<Interval> intervals;
    std::vector<uint32_t> painted(64, IntervalMap::kNone);
    for (uint32_t i = 0; i < 12; i++) {
      uint64_t start = random() % 60, end = start + random() % 20;
      intervals.push_back({start, end, i, i});
      for (uint64_t a = start; a < std::min<uint64_t>(end, 64); a++) painted[a] = i;
    }
    std::shuffle(intervals.begin(), intervals.end(), random);
    IntervalMap map(intervals);
    for (uint64_t a = 0; a < 64; a++) ASSERT_EQ(map.find(a), painted[a]) << "round " << round << " address " << a;
  }
}

TEST(IntervalMap, ReachesTheHighestAddress) {
  IntervalMap map({{10, UINT64_MAX, 0, 3}});
  EXPECT_EQ(map.find(UINT64_MAX - 1), 3u);
  EXPECT_EQ(map.find(UINT64_MAX), IntervalMap::kNone);
}

}  // namespace
}  // namespace cprof::symbolize
