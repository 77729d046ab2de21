#include "event/record_sorter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace cprof::event {
namespace {

std::span<const std::byte> bytes_of(const uint64_t& value) { return std::as_bytes(std::span(&value, 1)); }

uint64_t value_of(const RecordSorter::Item& item) {
  uint64_t value;
  memcpy(&value, item.record.data(), sizeof(value));
  return value;
}

struct Taken {
  std::vector<uint64_t> times, values;
  Result<void> operator()(const RecordSorter::Item& item) {
    times.push_back(item.time_ns);
    values.push_back(value_of(item));
    return {};
  }
};

TEST(RecordSorter, TwoCpusAreMergedByTime) {
  RecordSorter sorter;
  for (uint64_t t : {1, 5, 2, 4}) sorter.push_copy(t, bytes_of(t));
  Taken taken;
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  EXPECT_EQ(taken.times, (std::vector<uint64_t>{1, 2, 4, 5}));
  EXPECT_EQ(sorter.late(), 0u);
}

TEST(RecordSorter, EqualTimesKeepTheirOrder) {
  RecordSorter sorter;
  for (uint64_t i = 0; i < 100; i++) sorter.push_copy(i % 2, bytes_of(i));
  Taken taken;
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  for (size_t i = 0; i < 50; i++) EXPECT_EQ(taken.values[i], 2 * i);
}

TEST(RecordSorter, ARoundHoldsBackWhatMayStillBePreceded) {
  RecordSorter sorter;
  Taken taken;
  sorter.push_copy(10, bytes_of(0));
  ASSERT_TRUE(sorter.deliver(sorter.finish_round(), taken));
  EXPECT_TRUE(taken.times.empty());
  sorter.push_copy(7, bytes_of(0));
  sorter.push_copy(20, bytes_of(0));
  ASSERT_TRUE(sorter.deliver(sorter.finish_round(), taken));
  EXPECT_EQ(taken.times, (std::vector<uint64_t>{7, 10}));
  ASSERT_TRUE(sorter.deliver(sorter.finish_round(), taken));
  EXPECT_EQ(taken.times, (std::vector<uint64_t>{7, 10, 20}));
}

TEST(RecordSorter, CountsWhatCameTooLate) {
  RecordSorter sorter;
  Taken taken;
  sorter.push_copy(10, bytes_of(0));
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  sorter.push_copy(9, bytes_of(0));
  sorter.push_copy(0, bytes_of(0));
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  EXPECT_EQ(sorter.late(), 1u);
}

TEST(RecordSorter, AnErrorStopsAndTheRestStaysHeld) {
  RecordSorter sorter;
  for (uint64_t t = 1; t <= 3; t++) sorter.push_copy(t, bytes_of(t));
  auto refuse = [](const RecordSorter::Item&) -> Result<void> { return fail("disk full"); };
  EXPECT_FALSE(sorter.deliver(UINT64_MAX, refuse));
  Taken taken;
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  EXPECT_EQ(taken.times, (std::vector<uint64_t>{2, 3}));
}

// Without rounds: disorder of up to 1000 records is mended while little is held of a long stream.
TEST(RecordSorter, BoundedWindowSortsLongStreams) {
  constexpr size_t kLimit = 8u << 20;
  RecordSorter sorter(kLimit);
  std::mt19937_64 random(1);
  std::vector<std::byte> record(1024);
  Taken taken;
  size_t most_held = 0;
  for (uint64_t i = 0; i < 60000; i++) {
    uint64_t time = 1000 + i + random() % 1000;
    memcpy(record.data(), &time, 8);
    sorter.push_copy(time, record);
    most_held = std::max(most_held, sorter.held_bytes());
    while (sorter.over_limit()) ASSERT_TRUE(sorter.deliver_half(taken));
  }
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  EXPECT_EQ(taken.times.size(), 60000u);
  EXPECT_TRUE(std::is_sorted(taken.times.begin(), taken.times.end()));
  EXPECT_EQ(taken.times, taken.values);
  EXPECT_EQ(sorter.late(), 0u);
  EXPECT_LT(most_held, kLimit + (2u << 20));
}

// One far-future record in each chunk must not keep the whole input in memory.
TEST(RecordSorter, HostileTimesCannotKeepEveryChunk) {
  constexpr size_t kLimit = 4u << 20;
  RecordSorter sorter(kLimit);
  std::vector<std::byte> record(32768);
  Taken taken;
  size_t most_held = 0;
  for (uint64_t i = 0; i < 2000; i++) {
    sorter.push_copy(i % 32 == 0 ? UINT64_MAX - i : i, record);
    most_held = std::max(most_held, sorter.held_bytes());
    while (sorter.over_limit()) ASSERT_TRUE(sorter.deliver_half(taken));
  }
  ASSERT_TRUE(sorter.deliver(UINT64_MAX, taken));
  EXPECT_EQ(taken.times.size(), 2000u);
  EXPECT_LT(most_held, kLimit + (2u << 20));
}

}  // namespace
}  // namespace cprof::event
