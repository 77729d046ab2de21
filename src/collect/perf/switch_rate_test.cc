#include "collect/perf/switch_rate.h"

#include <gtest/gtest.h>

namespace cprof::collect {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Switches of one ring at a steady rate; gives the time after them.
uint64_t run(SwitchRate& rate, size_t ring, uint64_t start_ns, uint64_t per_second, double seconds) {
  const auto count = static_cast<uint64_t>(static_cast<double>(per_second) * seconds);
  for (uint64_t i = 0; i < count; i++) rate.note(ring, start_ns + i * kSecond / per_second);
  return start_ns + count * kSecond / per_second;
}

TEST(SwitchRate, UpToTheLimitEverySwitchHasAStack) {
  SwitchRate rate;
  run(rate, 0, kSecond, 4900, 2);
  EXPECT_EQ(rate.wanted_period(), 1u);
}

TEST(SwitchRate, AStormIsMetWithinMilliseconds) {
  SwitchRate rate;
  uint64_t now = run(rate, 0, kSecond, 100, 1);
  run(rate, 0, now, 60'000, 0.01);
  EXPECT_EQ(rate.wanted_period(), 16u) << "60,000 / 5,000 = 12, in powers of two";
}

TEST(SwitchRate, RingsAddUp) {
  SwitchRate rate;
  run(rate, 0, kSecond, 4000, 0.5);
  run(rate, 1, kSecond, 4000, 0.5);
  EXPECT_EQ(rate.wanted_period(), 2u);
}

TEST(SwitchRate, ASilentRingCountsNoMore) {
  SwitchRate rate;
  run(rate, 0, kSecond, 60'000, 0.1);
  run(rate, 1, 3 * kSecond, 1000, 2);
  EXPECT_EQ(rate.wanted_period(), 1u);
}

TEST(SwitchRate, CalmIsBelievedAfterHalfASecond) {
  SwitchRate rate;
  uint64_t now = run(rate, 0, kSecond, 40'000, 0.2);
  EXPECT_EQ(rate.wanted_period(), 8u);
  now = run(rate, 0, now, 1000, 0.4);
  EXPECT_EQ(rate.wanted_period(), 8u);
  run(rate, 0, now, 1000, 0.4);
  EXPECT_EQ(rate.wanted_period(), 1u);
}

TEST(SwitchRate, TimesThatStandStillOrGoBackAreSurvived) {
  SwitchRate rate;
  for (int i = 0; i < 1000; i++) rate.note(0, 5);
  for (int i = 0; i < 1000; i++) rate.note(0, 3);
  EXPECT_GE(rate.wanted_period(), 1u);
}

}  // namespace
}  // namespace cprof::collect
