#include "collect/bpf/stack_book.h"

#include <gtest/gtest.h>

namespace cprof::collect {
namespace {

constexpr uint64_t kSlack = StackBook::kSlackNs;
constexpr uint64_t kFirst = 7, kSecondOfPlace = kFirst + SAMPLER_SENT_SLOTS, kThird = kFirst + 2 * SAMPLER_SENT_SLOTS;
constexpr std::byte kRecord[16] = {};

TEST(StackBook, KeepsTheRecordUntilItIsTold) {
  StackBook book;
  EXPECT_EQ(book.find(kFirst), nullptr);
  book.keep(kFirst, kSlack, kRecord);
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
  book.keep(kFirst, 1 * kSlack, kRecord);
  book.keep(kSecondOfPlace, 3 * kSlack, kRecord);
  book.delivered_until(4 * kSlack);
  book.keep(kThird, 5 * kSlack, kRecord);
  EXPECT_NE(book.find(kFirst), nullptr) << "the one that replaced it was written less than the slack ago";
  book.delivered_until(4 * kSlack + 1);
  book.keep(kThird + SAMPLER_SENT_SLOTS, 5 * kSlack, kRecord);
  EXPECT_EQ(book.find(kFirst), nullptr);
  EXPECT_NE(book.find(kSecondOfPlace), nullptr) << "the last one that is surely in the place";
}

TEST(StackBook, KeepsTwoOfOnePlaceWrittenTogether) {
  StackBook book;
  book.keep(kFirst, 5 * kSlack, kRecord);
  book.keep(kSecondOfPlace, 5 * kSlack + 10, kRecord);
  book.delivered_until(20 * kSlack);
  book.keep(kThird, 21 * kSlack, kRecord);
  EXPECT_NE(book.find(kFirst), nullptr) << "it may have been written last";
  EXPECT_NE(book.find(kSecondOfPlace), nullptr);
}

TEST(StackBook, WrittenAgainIsNotForgotten) {
  StackBook book;
  book.keep(kFirst, 1 * kSlack, kRecord);
  book.tell(*book.find(kFirst));
  book.keep(kSecondOfPlace, 3 * kSlack, kRecord);
  book.keep(kFirst, 6 * kSlack, kRecord);
  book.delivered_until(20 * kSlack);
  book.keep(kThird, 21 * kSlack, kRecord);
  ASSERT_NE(book.find(kFirst), nullptr);
  EXPECT_TRUE(book.find(kFirst)->is_told);
  EXPECT_EQ(book.find(kSecondOfPlace), nullptr);
}

TEST(StackBook, IsToldAgainWhenWrittenAfterARepeat) {
  StackBook book;
  book.tell(book.keep(kFirst, 1 * kSlack, kRecord));
  EXPECT_TRUE(book.keep(kFirst, 2 * kSlack, kRecord).is_told) << "two of one place take turns: the sink knows it";
  book.repeat(5 * kSlack);
  EXPECT_TRUE(book.find(kFirst)->is_told);
  StackBook::Stack& again = book.keep(kFirst, 6 * kSlack, kRecord);
  EXPECT_FALSE(again.is_told);
  EXPECT_EQ(again.record.size(), sizeof(kRecord));
  book.tell(again);
  EXPECT_TRUE(book.keep(kFirst, 7 * kSlack, kRecord).is_told);
}

TEST(StackBook, ForgetsWhatIsNotWrittenAgainAfterARepeat) {
  StackBook book;
  book.tell(book.keep(kFirst, 1 * kSlack, kRecord));
  book.tell(book.keep(kFirst + 1, 1 * kSlack, kRecord));
  book.keep(kFirst + 2, 4 * kSlack, kRecord);
  book.delivered_until(5 * kSlack);
  book.repeat(5 * kSlack);
  book.keep(kFirst + 1, 6 * kSlack, kRecord);
  book.delivered_until(6 * kSlack);
  book.repeat(10 * kSlack);
  EXPECT_NE(book.find(kFirst), nullptr) << "an event of the first repeat's time may still name it";
  book.delivered_until(6 * kSlack + 1);
  book.repeat(15 * kSlack);
  EXPECT_EQ(book.find(kFirst), nullptr);
  EXPECT_NE(book.find(kFirst + 1), nullptr) << "it was written again";
  EXPECT_NE(book.find(kFirst + 2), nullptr) << "its place may have been filled after it was cleared";
  book.delivered_until(20 * kSlack);
  book.repeat(20 * kSlack);
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
