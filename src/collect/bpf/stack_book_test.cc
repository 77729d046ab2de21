#include "collect/bpf/stack_book.h"

#include <gtest/gtest.h>

namespace cprof::collect {
namespace {

constexpr uint64_t kSecond = StackBook::kSlackNs;
constexpr uint64_t kFirst = 7, kSecondOfPlace = kFirst + SAMPLER_SENT_SLOTS, kThird = kFirst + 2 * SAMPLER_SENT_SLOTS;
constexpr std::byte kRecord[16] = {};

TEST(StackBook, KeepsTheRecordUntilItIsTold) {
  StackBook book;
  EXPECT_EQ(book.find(kFirst), nullptr);
  book.keep(kFirst, kSecond, kRecord);
  StackBook::Stack* stack = book.find(kFirst);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->record.size(), sizeof(kRecord));
  EXPECT_FALSE(stack->is_told);
  book.tell(*stack);
  EXPECT_TRUE(book.find(kFirst)->is_told);
  EXPECT_EQ(book.find(kFirst)->record.capacity(), 0u);
}

TEST(StackBook, ForgetsWhatWasReplacedWhenAllThatMayNameItIsDelivered) {
  StackBook book;
  book.keep(kFirst, 1 * kSecond, kRecord);
  book.keep(kSecondOfPlace, 3 * kSecond, kRecord);
  book.delivered_until(4 * kSecond);
  book.keep(kThird, 5 * kSecond, kRecord);
  EXPECT_NE(book.find(kFirst), nullptr) << "the one that replaced it was written less than the slack ago";
  book.delivered_until(4 * kSecond + 1);
  book.keep(kThird + SAMPLER_SENT_SLOTS, 5 * kSecond, kRecord);
  EXPECT_EQ(book.find(kFirst), nullptr);
  EXPECT_NE(book.find(kSecondOfPlace), nullptr) << "the last one that is surely in the place";
}

TEST(StackBook, KeepsTwoOfOnePlaceWrittenTogether) {
  StackBook book;
  book.keep(kFirst, 5 * kSecond, kRecord);
  book.keep(kSecondOfPlace, 5 * kSecond + 10, kRecord);
  book.delivered_until(20 * kSecond);
  book.keep(kThird, 21 * kSecond, kRecord);
  EXPECT_NE(book.find(kFirst), nullptr) << "it may have been written last";
  EXPECT_NE(book.find(kSecondOfPlace), nullptr);
}

TEST(StackBook, WrittenAgainIsNotForgotten) {
  StackBook book;
  book.keep(kFirst, 1 * kSecond, kRecord);
  book.tell(*book.find(kFirst));
  book.keep(kSecondOfPlace, 3 * kSecond, kRecord);
  book.keep(kFirst, 6 * kSecond, kRecord);
  book.delivered_until(20 * kSecond);
  book.keep(kThird, 21 * kSecond, kRecord);
  ASSERT_NE(book.find(kFirst), nullptr);
  EXPECT_TRUE(book.find(kFirst)->is_told);
  EXPECT_EQ(book.find(kSecondOfPlace), nullptr);
}

TEST(StackBook, IsToldAgainWhenWrittenAfterARepeat) {
  StackBook book;
  book.tell(book.keep(kFirst, 1 * kSecond, kRecord));
  EXPECT_TRUE(book.keep(kFirst, 2 * kSecond, kRecord).is_told) << "two of one place take turns: the sink knows it";
  book.repeat(5 * kSecond);
  EXPECT_TRUE(book.find(kFirst)->is_told);
  StackBook::Stack& again = book.keep(kFirst, 6 * kSecond, kRecord);
  EXPECT_FALSE(again.is_told);
  EXPECT_EQ(again.record.size(), sizeof(kRecord));
  book.tell(again);
  EXPECT_TRUE(book.keep(kFirst, 7 * kSecond, kRecord).is_told);
}

TEST(StackBook, ForgetsWhatIsNotWrittenAgainAfterARepeat) {
  StackBook book;
  book.tell(book.keep(kFirst, 1 * kSecond, kRecord));
  book.tell(book.keep(kFirst + 1, 1 * kSecond, kRecord));
  book.keep(kFirst + 2, 4 * kSecond, kRecord);
  book.delivered_until(5 * kSecond);
  book.repeat(5 * kSecond);
  book.keep(kFirst + 1, 6 * kSecond, kRecord);
  book.delivered_until(6 * kSecond);
  book.repeat(10 * kSecond);
  EXPECT_NE(book.find(kFirst), nullptr) << "an event of the first repeat's time may still name it";
  book.delivered_until(6 * kSecond + 1);
  book.repeat(15 * kSecond);
  EXPECT_EQ(book.find(kFirst), nullptr);
  EXPECT_NE(book.find(kFirst + 1), nullptr) << "it was written again";
  EXPECT_NE(book.find(kFirst + 2), nullptr) << "its place may have been filled after it was cleared";
  book.delivered_until(20 * kSecond);
  book.repeat(20 * kSecond);
  EXPECT_EQ(book.size(), 0u);
}

TEST(StackBook, IsBoundedByPlacesAndWhatIsNew) {
  StackBook book;
  for (uint64_t id = 1; id < 10 * uint64_t{SAMPLER_SENT_SLOTS}; id++) {
    uint64_t now = id * 100'000;
    book.delivered_until(now);
    book.keep(id * 0x9fb21c651e98df25ull, now, kRecord);
  }
  EXPECT_LT(book.size(), 5 * SAMPLER_SENT_SLOTS);
}

}  // namespace
}  // namespace cprof::collect
