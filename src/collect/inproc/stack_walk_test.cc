// The walk over stacks and rows made here: right ones, broken ones and wild ones. None may read outside what it was given.
#include "collect/inproc/stack_walk.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

#include "collect/inproc/handler.h"

namespace cprof::inproc {
namespace {

constexpr uint64_t kCode = 0x400000;
constexpr uint32_t kPages = 4;

// One module of four pages; the rules are the test's.
class WalkTest : public testing::Test {
 protected:
  WalkTest() : stack_(512), pages_(std::make_unique<PageCopies>()), words_(kRingWords) {
    ring_.set_memory(words_.data(), kRingWords);
  }

  void set_rules(std::vector<cp_rule> rules) {
    rules_ = std::move(rules);
    rows_.clear();
    page_starts_.assign(1, 0);
    for (uint32_t page = 0; page < kPages; page++) {
      rows_.push_back(CP_MAKE_ROW(0, page % rules_.size()));
      page_starts_.push_back(static_cast<uint32_t>(rows_.size()));
    }
    table_ = {rows_.data(), page_starts_.data(), rules_.data(), kCode, kPages, static_cast<uint32_t>(rules_.size())};
    module_ = {kCode, kCode + kPages * 4096, 0, &table_};
    list_ = {&module_, 1, ++generation_};
  }

  uint64_t address_of(size_t word) const { return reinterpret_cast<uint64_t>(&stack_[word]); }
  StackRange range() const { return {address_of(0), address_of(0) + stack_.size() * 8}; }

  WalkEnd walk(uint64_t pc, uint64_t sp, uint64_t fp, uint32_t limit = 64) {
    Registers registers{};
    registers.value[16] = pc;
    registers.value[7] = sp;
    registers.value[6] = fp;
    const StackRange known = range();
    StackReader reader(&known, 1, pages_.get(), getpid());
    sink_ = {&ring_, limit, 0};
    return walk_stack({&list_, &cp_machine_x86_64, cache_.get(), {}}, registers, reader, sink_);
  }

  static cp_rule rule(uint8_t kind, int32_t offset) {
    cp_rule made{};
    made.cfa_kind = kind;
    made.offset = offset;
    return made;
  }

  static constexpr uint64_t kRingWords = 1024;
  std::vector<uint64_t> stack_;
  std::unique_ptr<PageCopies> pages_;
  std::unique_ptr<RuleCache> cache_ = std::make_unique<RuleCache>();
  uint32_t generation_ = 0;
  std::vector<std::atomic<uint64_t>> words_;
  SampleRing ring_;
  FrameSink sink_;
  std::vector<cp_rule> rules_;
  std::vector<cp_row> rows_;
  std::vector<uint32_t> page_starts_;
  cp_table table_{};
  Module module_;
  ModuleList list_;
};

TEST_F(WalkTest, FollowsRowsToTheRoot) {
  set_rules({rule(CP_CFA_SP, 16), rule(CP_CFA_STOP, 0)});
  stack_[101] = kCode + 20;          // the caller, in the same page
  stack_[103] = kCode + 4096 + 5;    // its caller: the root
  EXPECT_EQ(walk(kCode + 8, address_of(100), 0), WalkEnd::kRoot);
  EXPECT_EQ(sink_.count, 3u);
}

TEST_F(WalkTest, StopsAtTheLimitAndWhereNothingIsKnown) {
  set_rules({rule(CP_CFA_SP, 8)});
  for (uint64_t& word : stack_) word = kCode + 1;
  EXPECT_EQ(walk(kCode + 8, address_of(0), 0, 10), WalkEnd::kMaxDepth);
  EXPECT_EQ(sink_.count, 10u);
  EXPECT_EQ(walk(0x123456789, address_of(0), 0), WalkEnd::kNoModule);
  EXPECT_EQ(sink_.count, 1u);
}

TEST_F(WalkTest, AStackThatLeadsOutOfItsRangeEndsThere) {
  set_rules({rule(CP_CFA_SP, 1 << 30)});
  EXPECT_EQ(walk(kCode + 8, address_of(100), 0), WalkEnd::kUnreadable);
  set_rules({rule(CP_CFA_SP, -64)});
  EXPECT_EQ(walk(kCode + 8, address_of(100), 0), WalkEnd::kNoProgress);
  set_rules({rule(CP_CFA_FP, 16)});
  EXPECT_EQ(walk(kCode + 8, address_of(100), ~uint64_t{0} - 64), WalkEnd::kUnreadable);
}

// Reads outside the known stack go through the kernel: memory that is not there is an answer, not a fault.
TEST_F(WalkTest, ReadsElsewhereAreFewAndSafe) {
  auto* other = static_cast<uint64_t*>(mmap(nullptr, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(other, MAP_FAILED);
  for (size_t word = 0; word < 8 * 512; word++) other[word] = kCode + 1;
  set_rules({rule(CP_CFA_SP, 4096)});
  const uint64_t start = reinterpret_cast<uint64_t>(other);
  EXPECT_EQ(walk(kCode + 8, start, 0), WalkEnd::kUnreadable);  // the budget ends before the memory does
  EXPECT_EQ(sink_.count, PageCopies::kCount + 1);
  munmap(other + 512, 4096);
  EXPECT_EQ(walk(kCode + 8, start, 0), WalkEnd::kUnreadable);
  EXPECT_EQ(sink_.count, 2u);
  munmap(other, 8 * 4096);
}

// verifies: B2
// Corrupted rows and wild registers by the hundred thousand: every walk ends, within its limit.
TEST_F(WalkTest, NothingWildEverFaults) {
  std::mt19937_64 random(20260101);
  const auto wild = [&]() -> uint64_t {
    switch (random() % 6) {
      case 0: return random();
      case 1: return address_of(random() % stack_.size()) + random() % 16;
      case 2: return kCode + random() % (kPages * 4096);
      case 3: return range().high - random() % 64;
      case 4: return ~uint64_t{0} - random() % 4096;
      default: return random() % 65536;
    }
  };
  for (int round = 0; round < 100'000; round++) {
    if (round % 100 == 0) {
      std::vector<cp_rule> rules(4);
      for (cp_rule& made : rules) {
        const std::array<uint64_t, 1> bytes = {random()};
        static_assert(sizeof bytes == sizeof made);
        __builtin_memcpy(&made, bytes.data(), sizeof made);
        made.cfa_kind = static_cast<uint8_t>(random() % 14);
      }
      set_rules(rules);
    }
    for (int n = 0; n < 16; n++) stack_[random() % stack_.size()] = wild();
    walk(wild(), wild(), wild(), 32);
    ASSERT_LE(sink_.count, 32u);
  }
}

TEST_F(WalkTest, AFiberEndsWhereItsStackDoes) {
  set_rules({rule(CP_CFA_SP, 16)});
  for (uint64_t& word : stack_) word = kCode + 1;
  Registers registers{};
  registers.value[16] = kCode + 8;
  registers.value[7] = address_of(100);
  const StackRange known = range(), fiber = {address_of(90), address_of(120)};
  StackReader reader(&known, 1, pages_.get(), getpid());
  sink_ = {&ring_, 64, 0};
  EXPECT_EQ(walk_stack({&list_, &cp_machine_x86_64, cache_.get(), fiber}, registers, reader, sink_), WalkEnd::kRoot);
  EXPECT_EQ(sink_.count, 10u);
}

TEST(SampleRing, DropsWholeSamplesAndCountsThem) {
  std::vector<std::atomic<uint64_t>> words(16);
  SampleRing ring;
  ring.set_memory(words.data(), words.size());
  SampleHeader header{.ticks = 5, .generation = 3, .frame_count = 2, .end = WalkEnd::kNoRule, .span_ns = 4, .track = 9};
  for (uint64_t n = 0; n < SampleHeader::kWords; n++) ring.put(n, header.word(n));
  ring.put(3, 0xa);
  ring.put(4, 0xb | kExactPc);
  EXPECT_EQ(ring.available(), 0u);
  ring.commit(5);
  EXPECT_EQ(ring.room(), 11u);
  const auto read = SampleHeader::from_words(ring.peek(0), ring.peek(1), ring.peek(2));
  EXPECT_EQ(read.ticks, 5u);
  EXPECT_EQ(read.generation, 3u);
  EXPECT_EQ(read.frame_count, 2u);
  EXPECT_EQ(read.end, WalkEnd::kNoRule);
  EXPECT_EQ(read.span_ns, 4u);
  EXPECT_EQ(read.track, 9u);
  EXPECT_EQ(ring.peek(4), 0xb | kExactPc);
  ring.consume(5);
  EXPECT_EQ(ring.room(), 16u);
}

}  // namespace
}  // namespace cprof::inproc
