#include "uprobe/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cprof::uprobe {
namespace {

void add(FunctionSums& sums, uint64_t ns) {
  sums.histogram.buckets[uprobe_bucket(ns)]++;
  sums.least_ns = sums.finished == 0 ? ns : std::min(sums.least_ns, ns);
  sums.most_ns = std::max(sums.most_ns, ns);
  sums.finished++;
  sums.total_ns += ns;
}

TEST(Latency, BucketsFollowEachOtherWithoutGaps) {
  EXPECT_EQ(LatencyHistogram::lowest_of(0), 0u);
  for (uint32_t i = 0; i + 1 < UPROBE_BUCKETS; i++) {
    const uint64_t lowest = LatencyHistogram::lowest_of(i), next = LatencyHistogram::lowest_of(i + 1);
    EXPECT_EQ(next, lowest + LatencyHistogram::width_of(i));
    EXPECT_EQ(uprobe_bucket(lowest), i);
    EXPECT_EQ(uprobe_bucket(next - 1), i);
  }
  EXPECT_EQ(uprobe_bucket(UINT64_MAX), UPROBE_BUCKETS - 1);
}

TEST(Latency, QuantilesAreWithinFivePercent) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> spread(10, 2);
  FunctionSums sums;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20'000; i++) {
    values.push_back(static_cast<uint64_t>(spread(random)));
    add(sums, values.back());
  }
  std::ranges::sort(values);
  for (double share : {0.01, 0.5, 0.95, 0.99, 0.999}) {
    const auto truth = static_cast<double>(values[static_cast<size_t>(share * 20'000) - 1]);
    EXPECT_NEAR(static_cast<double>(sums.quantile(share)), truth, 0.05 * truth + 1) << share;
  }
}

TEST(Latency, QuantilesStayBetweenLeastAndMost) {
  FunctionSums sums;
  EXPECT_EQ(sums.quantile(0.5), 0u);
  EXPECT_EQ(sums.mean_ns(), 0u);
  add(sums, 1'000'003);
  for (double share : {0.0, 0.5, 1.0}) EXPECT_EQ(sums.quantile(share), 1'000'003u);
  add(sums, 1'000'001);
  EXPECT_EQ(sums.mean_ns(), 1'000'002u);
}

TEST(Latency, PowersOfTwoForPeople) {
  FunctionSums sums;
  EXPECT_TRUE(sums.histogram.by_powers().empty());
  for (uint64_t ns : {1024, 1500, 2047, 2048, 9000}) add(sums, ns);
  const auto powers = sums.histogram.by_powers();
  ASSERT_EQ(powers.size(), 4u);
  EXPECT_EQ(powers[0].from_ns, 1024u);
  EXPECT_EQ(powers[0].to_ns, 2048u);
  EXPECT_EQ(powers[0].count, 3u);
  EXPECT_EQ(powers[1].count, 1u);
  EXPECT_EQ(powers[2].count, 0u);
  EXPECT_EQ(powers[3].from_ns, 8192u);
}

TEST(Latency, UnfinishedIsWhatIsLeft) {
  uprobe_row row{.calls = 10, .finished = 5, .unwound = 2, .untimed = 1, .total_ns = 50, .raw_ns = 60, .inverted_least_ns = ~uint64_t{4}, .most_ns = 20};
  const FunctionSums sums = sums_of(row);
  EXPECT_EQ(sums.unfinished(), 2u);
  EXPECT_EQ(sums.least_ns, 4u);
  EXPECT_EQ(sums_of({}).least_ns, 0u);
  row.calls = 3;  // read before the others grew
  EXPECT_EQ(sums_of(row).unfinished(), 0u);
}

}  // namespace
}  // namespace cprof::uprobe
