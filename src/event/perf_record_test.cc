#include "event/perf_record.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>

#include "base/byte_reader.h"

namespace cprof::event {
namespace {

// Bytes of records as a kernel of either byte order would write them.
class RawRecord {
 public:
  RawRecord(uint32_t type, uint16_t misc, bool swap = false) : swap_(swap) { put(type), put(misc), put(uint16_t{0}); }
  template <typename T>
  RawRecord& put(T value) {
    std::byte bytes[sizeof(T)];
    memcpy(bytes, &value, sizeof(T));
    if (swap_) std::reverse(bytes, bytes + sizeof(T));
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof(T));
    return *this;
  }
  RawRecord& text(std::string_view text, size_t room) {
    for (size_t i = 0; i < room; i++) put(i < text.size() ? text[i] : char{0});
    return *this;
  }
  RawRecord& trailer(int32_t pid, int32_t tid, uint64_t time, uint32_t cpu, uint64_t id) {
    return put(pid).put(tid).put(time).put(cpu).put(uint32_t{0}).put(id);
  }
  std::span<const std::byte> bytes() {
    uint16_t size = static_cast<uint16_t>(bytes_.size());
    if (swap_) size = __builtin_bswap16(size);
    memcpy(bytes_.data() + 6, &size, 2);
    return bytes_;
  }

 private:
  bool swap_;
  std::vector<std::byte> bytes_;
};

constexpr uint64_t kSampleType = kWrittenSampleType | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

AttrLayout snapshot_layout() {
  return {.sample_type = kSampleType, .registers = 0x3, .stack_bytes = 64, .metric = 0};
}

class BothByteOrders : public testing::TestWithParam<bool> {
 protected:
  BothByteOrders() : decoder(GetParam()) { decoder.add_layout(snapshot_layout(), {}); }
  RawRecord record(uint32_t type, uint16_t misc) { return RawRecord(type, misc, GetParam()); }
  RecordDecoder decoder;
  Event event;
};
INSTANTIATE_TEST_SUITE_P(Order, BothByteOrders, testing::Bool());

TEST_P(BothByteOrders, SampleWithChainRegistersAndStack) {
  auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
  raw.put(uint64_t{9}).put(uint64_t{0xffffffff81000010}).put(10).put(11).put(uint64_t{1234}).put(uint32_t{3}).put(0);
  raw.put(uint64_t{1000000});
  raw.put(uint64_t{5}).put(static_cast<uint64_t>(PERF_CONTEXT_KERNEL)).put(uint64_t{0xffffffff81000010});
  raw.put(uint64_t{0xffffffff81000020}).put(static_cast<uint64_t>(PERF_CONTEXT_USER)).put(uint64_t{0x401000});
  raw.put(uint64_t{PERF_SAMPLE_REGS_ABI_64}).put(uint64_t{0x11}).put(uint64_t{0x22});
  raw.put(uint64_t{64});
  for (int i = 0; i < 64; i++) raw.put(static_cast<uint8_t>(i));
  raw.put(uint64_t{40});
  ASSERT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kEvent);
  const auto& sample = std::get<Sample>(event);
  EXPECT_EQ(sample.time_ns, 1234u);
  EXPECT_EQ(sample.task, (Task{10, 11}));
  EXPECT_EQ(sample.cpu, 3u);
  EXPECT_EQ(sample.period, 1000000u);
  EXPECT_TRUE(sample.in_kernel);
  ASSERT_EQ(sample.kernel_chain.size(), 2u);
  EXPECT_EQ(sample.kernel_chain[1], 0xffffffff81000020u);
  ASSERT_EQ(sample.user_chain.size(), 1u);
  EXPECT_EQ(sample.user_chain[0], 0x401000u);
  ASSERT_TRUE(sample.snapshot);
  EXPECT_EQ(sample.snapshot->registers.get(1), 0x22u);
  EXPECT_EQ(sample.snapshot->stack.size(), 40u);
  EXPECT_FALSE(sample.snapshot->is_full);
  EXPECT_EQ(sample.snapshot->requested_bytes, 64u);
  EXPECT_EQ(decoder.time_of_record(raw.bytes()), 1234u);
}

TEST_P(BothByteOrders, KernelThreadHasNoRegistersAndNoStack) {
  auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
  for (uint64_t word : {9, 1, 0, 7, 0, 1, 0, 0, 0}) raw.put(word);
  ASSERT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kEvent);
  const auto& sample = std::get<Sample>(event);
  ASSERT_TRUE(sample.snapshot);
  EXPECT_EQ(sample.snapshot->registers.abi, 0u);
  EXPECT_TRUE(sample.snapshot->stack.empty());
}

TEST_P(BothByteOrders, LyingCountsAreMalformed) {
  for (uint64_t nr : {uint64_t{2}, uint64_t{1} << 61, ~uint64_t{0}}) {
    auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    for (uint64_t word : {uint64_t{9}, uint64_t{1}, uint64_t{0}, uint64_t{7}, uint64_t{0}, uint64_t{1}, nr, uint64_t{0}})
      raw.put(word);
    EXPECT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kMalformed) << nr;
  }
  for (uint64_t written : {uint64_t{17}, ~uint64_t{0}}) {
    auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    for (uint64_t word : {9, 1, 0, 7, 0, 1, 0, 0, 16, 0, 0}) raw.put(word);
    raw.put(written);
    EXPECT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kMalformed) << written;
  }
}

TEST_P(BothByteOrders, Mmap2WithInodeAndWithBuildId) {
  auto raw = record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
  raw.put(10).put(11).put(uint64_t{0x1000}).put(uint64_t{0x2000}).put(uint64_t{0x3000});
  raw.put(8).put(1).put(uint64_t{42}).put(uint64_t{7}).put(PROT_READ | PROT_EXEC).put(MAP_PRIVATE).text("/bin/x", 8);
  raw.trailer(10, 11, 99, 1, 9);
  ASSERT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kEvent);
  auto mmap = std::get<Mmap>(event);
  EXPECT_EQ(mmap.file, (FileId{8, 1, 42, 7}));
  EXPECT_EQ(mmap.path, "/bin/x");
  EXPECT_EQ(mmap.time_ns, 99u);
  EXPECT_TRUE(mmap.build_id.empty());

  auto by_id = record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);
  by_id.put(10).put(11).put(uint64_t{0x1000}).put(uint64_t{0x2000}).put(uint64_t{0x3000});
  by_id.put(uint8_t{16}).put(uint8_t{0}).put(uint16_t{0});
  for (int i = 0; i < 20; i++) by_id.put(static_cast<uint8_t>(i < 16 ? i + 1 : 0));
  by_id.put(PROT_EXEC).put(MAP_PRIVATE).text("/bin/x", 8).trailer(10, 11, 99, 1, 9);
  ASSERT_EQ(decoder.decode(by_id.bytes(), event), DecodeOutcome::kEvent);
  mmap = std::get<Mmap>(event);
  EXPECT_EQ(mmap.build_id.size(), 16u);
  EXPECT_EQ(mmap.build_id[15], std::byte{16});
  EXPECT_EQ(mmap.protection, static_cast<uint32_t>(PROT_EXEC));
}

TEST_P(BothByteOrders, OldMmapHasNoProtection) {
  for (bool data : {false, true}) {
    auto raw = record(PERF_RECORD_MMAP, data ? PERF_RECORD_MISC_MMAP_DATA : 0);
    raw.put(-1).put(0).put(uint64_t{0xffffffff81000000}).put(uint64_t{0x2000}).put(uint64_t{0});
    raw.text("[kernel.kallsyms]_text", 24).trailer(0, 0, 0, 0, 0);
    ASSERT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kEvent);
    const auto& mmap = std::get<Mmap>(event);
    EXPECT_EQ(mmap.task.pid, -1);
    EXPECT_EQ((mmap.protection & PROT_EXEC) != 0, !data);
  }
}

TEST_P(BothByteOrders, SideBand) {
  auto comm = record(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
  comm.put(5).put(6).text("worker", 8).trailer(5, 6, 50, 0, 1);
  ASSERT_EQ(decoder.decode(comm.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, Comm{.time_ns = 50, .task = {5, 6}, .name = "worker", .exec = true}));

  auto fork = record(PERF_RECORD_FORK, 0);
  fork.put(5).put(4).put(7).put(4).put(uint64_t{60}).trailer(4, 4, 60, 0, 1);
  ASSERT_EQ(decoder.decode(fork.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, Fork{.time_ns = 60, .child = {5, 7}, .parent = {4, 4}}));

  auto exit = record(PERF_RECORD_EXIT, 0);
  exit.put(5).put(4).put(7).put(4).put(uint64_t{70}).trailer(5, 7, 70, 0, 1);
  ASSERT_EQ(decoder.decode(exit.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, Exit{.time_ns = 70, .task = {5, 7}}));

  auto out = record(PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  out.trailer(5, 7, 80, 3, 1);
  ASSERT_EQ(decoder.decode(out.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, SwitchOut{.time_ns = 80, .task = {5, 7}, .cpu = 3, .preempted = true}));

  auto in = record(PERF_RECORD_SWITCH_CPU_WIDE, 0);
  in.put(1).put(2).trailer(5, 7, 90, 3, 1);
  ASSERT_EQ(decoder.decode(in.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, SwitchIn{.time_ns = 90, .task = {5, 7}, .cpu = 3}));

  auto lost = record(PERF_RECORD_LOST, 0);
  lost.put(uint64_t{1}).put(uint64_t{77}).trailer(0, 0, 95, 2, 1);
  ASSERT_EQ(decoder.decode(lost.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, Lost{.time_ns = 95, .cpu = 2, .kind = LostKind::kRecords, .count = 77}));

  auto throttle = record(PERF_RECORD_THROTTLE, 0);
  throttle.put(uint64_t{97}).put(uint64_t{1}).put(uint64_t{1}).trailer(0, 0, 97, 2, 1);
  ASSERT_EQ(decoder.decode(throttle.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, Throttle{.time_ns = 97, .cpu = 2, .on = true}));
}

TEST_P(BothByteOrders, UnknownIgnoredAndShort) {
  auto unknown = record(84, 0);
  EXPECT_EQ(decoder.decode(unknown.bytes(), event), DecodeOutcome::kUnknown);
  auto ignored = record(PERF_RECORD_NAMESPACES, 0);
  EXPECT_EQ(decoder.decode(ignored.bytes(), event), DecodeOutcome::kIgnored);
  auto no_trailer = record(PERF_RECORD_COMM, 0);
  no_trailer.put(5).put(6).text("x", 8);
  EXPECT_EQ(decoder.decode(no_trailer.bytes(), event), DecodeOutcome::kMalformed);
  auto no_nul = record(PERF_RECORD_COMM, 0);
  no_nul.put(5).put(6).text("abcdefgh", 8).trailer(5, 6, 50, 0, 1);
  EXPECT_EQ(decoder.decode(no_nul.bytes(), event), DecodeOutcome::kMalformed);
  EXPECT_EQ(decoder.decode(no_nul.bytes().first(4), event), DecodeOutcome::kMalformed);
  EXPECT_EQ(decoder.decode({}, event), DecodeOutcome::kMalformed);
}

TEST(RecordDecoder, SkipsFieldsItDoesNotNeed) {
  RecordDecoder decoder;
  AttrLayout layout = snapshot_layout();
  layout.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
                       PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER;
  layout.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
  layout.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
  decoder.add_layout(layout, {});
  RawRecord raw(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  raw.put(uint64_t{0x40}).put(1).put(2).put(uint64_t{3}).put(uint64_t{4}).put(uint64_t{5}).put(uint64_t{6});
  raw.put(uint64_t{2}).put(uint64_t{100}).put(uint64_t{1}).put(uint64_t{11}).put(uint64_t{2}).put(uint64_t{12});
  raw.put(uint64_t{1}).put(uint64_t{0x40});                       // a chain without a marker: user, as misc says
  raw.put(uint32_t{4}).put(uint32_t{0xabcd});                     // raw
  raw.put(uint64_t{1}).put(uint64_t{0}).put(uint64_t{1}).put(uint64_t{2}).put(uint64_t{3});
  raw.put(uint64_t{2}).put(uint64_t{0xaa}).put(uint64_t{0xbb});
  Event event;
  ASSERT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kEvent);
  const auto& sample = std::get<Sample>(event);
  ASSERT_EQ(sample.user_chain.size(), 1u);
  EXPECT_EQ(sample.snapshot->registers.get(1), 0xbbu);
}

// A tracepoint's sample: the woken tid lies in its raw data; who ran is the waker, unless an interrupt did it.
TEST_P(BothByteOrders, WakeupFromATracepoint) {
  RecordDecoder wakeups(GetParam());
  const uint64_t fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  wakeups.add_layout({.sample_type = fields, .metric = kNoMetric, .woken_tid_offset = 12}, {});
  auto wake = [&](int32_t pid, int32_t tid, uint8_t flags, uint32_t raw_bytes) {
    auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
    raw.put(uint64_t{1}).put(pid).put(tid).put(uint64_t{1234}).put(raw_bytes);
    raw.put(uint16_t{370}).put(flags).put(uint8_t{0}).put(tid).put(uint32_t{7}).put(int32_t{4711}).put(uint32_t{0});
    return wakeups.decode(raw.bytes(), event);
  };
  ASSERT_EQ(wake(10, 11, 0x01, 20), DecodeOutcome::kEvent);
  EXPECT_TRUE(equal(event, Wakeup{1234, {-1, 4711}, {10, 11}}));
  for (uint8_t in_interrupt : {uint8_t{0x08}, uint8_t{0x10}}) {
    ASSERT_EQ(wake(10, 11, in_interrupt, 20), DecodeOutcome::kEvent);
    EXPECT_TRUE(equal(event, Wakeup{1234, {-1, 4711}, {}}));
  }
  ASSERT_EQ(wake(0, 0, 0, 20), DecodeOutcome::kEvent);
  EXPECT_EQ(std::get<Wakeup>(event).waker, Task{}) << "the idle task wakes nobody";
  EXPECT_EQ(wake(10, 11, 0, 12), DecodeOutcome::kMalformed);
  EXPECT_EQ(wake(10, 11, 0, 4000), DecodeOutcome::kMalformed);
}

TEST(RecordDecoder, ChainPartsOfOneModeAreJoined) {
  RecordDecoder decoder;
  decoder.add_layout({.sample_type = PERF_SAMPLE_CALLCHAIN}, {});
  RawRecord raw(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  auto user = static_cast<uint64_t>(PERF_CONTEXT_USER), kernel = static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
  for (uint64_t word : {uint64_t{8}, user, uint64_t{1}, kernel, uint64_t{2}, user, uint64_t{3}, user, uint64_t{4}})
    raw.put(word);
  Event event;
  ASSERT_EQ(decoder.decode(raw.bytes(), event), DecodeOutcome::kEvent);
  const auto& sample = std::get<Sample>(event);
  EXPECT_EQ(std::vector<uint64_t>(sample.user_chain.begin(), sample.user_chain.end()), (std::vector<uint64_t>{1, 3, 4}));
  EXPECT_EQ(sample.kernel_chain.size(), 1u);
}

TEST(RecordDecoder, LayoutIsChosenById) {
  RecordDecoder decoder;
  uint64_t first[] = {100}, second[] = {200};
  decoder.add_layout({.sample_type = kWrittenSampleType, .metric = 0}, first);
  decoder.add_layout({.sample_type = kWrittenSampleType, .metric = 1}, second);
  for (auto [id, metric] : {std::pair{100u, 0u}, {200u, 1u}, {0u, 0u}}) {
    std::vector<std::byte> bytes;
    ASSERT_TRUE(encode_record(Sample{.time_ns = 5}, id, bytes));
    Event event;
    ASSERT_EQ(decoder.decode(bytes, event), DecodeOutcome::kEvent);
    EXPECT_EQ(std::get<Sample>(event).metric, metric);
  }
  std::vector<std::byte> bytes;
  ASSERT_TRUE(encode_record(Sample{.time_ns = 5}, 300, bytes));
  Event event;
  EXPECT_EQ(decoder.decode(bytes, event), DecodeOutcome::kNoEvent);
}

class LbrCallStack : public BothByteOrders {
 protected:
  using Branch = std::pair<uint64_t, uint64_t>;  // from, to
  Sample decoded(uint64_t branch_type, const std::vector<uint64_t>& chain, const std::vector<Branch>& branches) {
    RecordDecoder reader(GetParam());
    reader.add_layout({.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK,
                       .branch_sample_type = branch_type}, {});
    auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
    raw.put(uint64_t{0x1010}).put(uint64_t{chain.size()});
    for (uint64_t word : chain) raw.put(word);
    raw.put(uint64_t{branches.size()});
    if (branch_type & PERF_SAMPLE_BRANCH_HW_INDEX) raw.put(uint64_t{7});
    for (const auto& [from, to] : branches) raw.put(from).put(to).put(uint64_t{0});
    if (branch_type & uint64_t{1} << 19)
      for (size_t i = 0; i < branches.size(); ++i) raw.put(uint64_t{0xffff});
    EXPECT_EQ(reader.decode(raw.bytes(), event), DecodeOutcome::kEvent);
    Sample sample = std::get<Sample>(event);
    user.assign(sample.user_chain.begin(), sample.user_chain.end());
    kernel.assign(sample.kernel_chain.begin(), sample.kernel_chain.end());
    return sample;
  }
  std::vector<uint64_t> user, kernel;
  static constexpr uint64_t kUser = static_cast<uint64_t>(PERF_CONTEXT_USER), kKernel = static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
};
INSTANTIATE_TEST_SUITE_P(Order, LbrCallStack, testing::Bool());

// The kernel's own walk has one user frame here: code without frame pointers.
TEST_P(LbrCallStack, CallsTakeThePlaceOfTheWalk) {
  for (uint64_t more : {uint64_t{0}, uint64_t{PERF_SAMPLE_BRANCH_HW_INDEX}, uint64_t{1} << 19}) {
    decoded(PERF_SAMPLE_BRANCH_CALL_STACK | more, {kKernel, 0xffffffff81000010, kUser, 0x1010, 0x77},
            {{0x2020, 0x1000}, {0x3030, 0x2000}});
    EXPECT_EQ(user, (std::vector<uint64_t>{0x1010, 0x2021, 0x3031}));
    EXPECT_EQ(kernel, std::vector<uint64_t>{0xffffffff81000010});
  }
  decoded(PERF_SAMPLE_BRANCH_CALL_STACK, {}, {{0x2020, 0x1000}, {0, 0}, {0x3030, 0x2000}});
  EXPECT_EQ(user, (std::vector<uint64_t>{0x1000, 0x2021})) << "an empty entry ends the record";
}

TEST_P(LbrCallStack, OtherBranchesAreNoStack) {
  decoded(PERF_SAMPLE_BRANCH_ANY, {kUser, 0x1010, 0x77}, {{0x2020, 0x1000}});
  EXPECT_EQ(user, (std::vector<uint64_t>{0x1010, 0x77}));
  decoded(PERF_SAMPLE_BRANCH_CALL_STACK, {kUser, 0x1010, 0x77}, {});
  EXPECT_EQ(user, (std::vector<uint64_t>{0x1010, 0x77}));
}

TEST_P(LbrCallStack, CountsThatLieAreMalformed) {
  RecordDecoder reader(GetParam());
  reader.add_layout({.sample_type = PERF_SAMPLE_BRANCH_STACK, .branch_sample_type = PERF_SAMPLE_BRANCH_CALL_STACK}, {});
  for (uint64_t count : {uint64_t{2}, uint64_t{1} << 60, UINT64_MAX}) {
    auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER).put(count).put(uint64_t{1}).put(uint64_t{2}).put(uint64_t{0});
    EXPECT_EQ(reader.decode(raw.bytes(), event), DecodeOutcome::kMalformed) << count;
  }
}

// Random events with the memory they view.
class EventMaker {
 public:
  explicit EventMaker(uint64_t seed) : random_(seed) {}

  Event make(size_t kind) {
    words_.resize(below(40));
    for (auto& word : words_) word = random_() >> 1;
    bytes_.resize(below(500));
    for (auto& byte : bytes_) byte = static_cast<std::byte>(random_());
    text_.assign(below(60), 'x');
    for (auto& c : text_) c = static_cast<char>('a' + below(26));
    switch (kind) {
      case 0: return sample();
      case 1: return StackMemory{.time_ns = random_(), .task = task(), .address = random_(), .bytes = bytes_};
      case 2: return mmap();
      case 3: return Comm{.time_ns = random_(), .task = task(), .name = text_, .exec = flip()};
      case 4: return Fork{.time_ns = random_(), .child = task(), .parent = task()};
      case 5: return Exit{.time_ns = random_(), .task = task()};
      case 6: return SwitchOut{.time_ns = random_(), .task = task(), .cpu = small(), .preempted = flip(),
                               .stack_id = flip() ? random_() : 0, .uninterruptible = flip()};
      case 7: return flip() ? SwitchIn{.time_ns = random_(), .task = task(), .cpu = small()}
                            : SwitchIn{.time_ns = random_(), .task = task(), .cpu = small(), .woken_ns = random_(), .waker = task()};
      case 8: return Lost{.time_ns = random_(), .cpu = small(), .kind = flip() ? LostKind::kRecords : LostKind::kSamples,
                          .count = random_()};
      case 9: return Throttle{.time_ns = random_(), .cpu = small(), .on = flip()};
      case 10: return stack_def();
      case 11: return Count{.time_ns = random_(), .task = task(), .metric = small(), .samples = random_(), .weight = random_(),
                            .stack_id = random_(), .in_kernel = flip()};
      case 12: return Wakeup{.time_ns = random_(), .task = task(), .waker = task()};
      case 13: return Cgroup{.time_ns = random_(), .task = task(), .path = text_};
      default: return KernelSymbol{.time_ns = random_(), .start = random_(), .length = small(), .name = text_, .is_removed = flip()};
    }
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  bool flip() { return random_() & 1; }
  uint32_t small() { return static_cast<uint32_t>(below(1024)); }
  Task task() { return {static_cast<int32_t>(random_()), static_cast<int32_t>(random_())}; }

  Sample sample() {
    std::span<const uint64_t> words(words_);
    size_t split = below(words.size() + 1), registers = std::min<size_t>(split, 8);
    Sample s{.time_ns = random_(), .task = task(), .cpu = small(), .metric = 0, .period = random_(), .ip = random_(),
             .in_kernel = flip(), .kernel_chain = words.first(split), .user_chain = words.subspan(split)};
    if (below(6) == 0) {
      s.kernel_chain = s.user_chain = {};
      s.ip = 0;
      s.repeats_stack = true;
      return s;
    }
    if (below(4) == 0) {
      s.kernel_chain = s.user_chain = {};
      s.stack_id = random_() | 1;
      return s;
    }
    if (flip()) return s;
    s.snapshot = Snapshot{.stack = bytes_, .requested_bytes = static_cast<uint32_t>(below(8192) * 8)};
    s.snapshot->is_full = !bytes_.empty() && bytes_.size() % 8 == 0 && below(2);  // the kernel's room is whole words
    if (flip()) s.snapshot->registers = {2, (uint64_t{1} << registers) - 1, words.first(registers)};
    return s;
  }

  StackDef stack_def() {
    std::span<const uint64_t> words(words_);
    size_t split = below(words.size() + 1);
    return {.time_ns = random_(), .task = task(), .id = random_() | 1, .kernel_chain = words.first(split),
            .user_chain = words.subspan(split), .user_end = static_cast<WalkEnd>(below(12))};
  }

  Mmap mmap() {
    Mmap m{.time_ns = random_(), .task = task(), .start = random_(), .length = random_(), .file_offset = random_(),
           .protection = small(), .flags = small(), .path = text_};
    if (flip()) m.file = {small(), small(), random_(), random_()};
    else m.build_id = std::span<const std::byte>(bytes_).first(std::min<size_t>(bytes_.size(), 20));
    return m;
  }

  std::mt19937_64 random_;
  std::vector<uint64_t> words_;
  std::vector<std::byte> bytes_;
  std::string text_;
};

AttrLayout layout_for(const Event& event) {
  const auto* sample = std::get_if<Sample>(&event);
  return written_layout(sample ? *sample : Sample{});
}

TEST(PerfRecord, DecodeOfEncodeIsTheSameEvent) {
  EventMaker maker(7);
  for (int round = 0; round < 5000; round++) {
    Event event = maker.make(static_cast<size_t>(round) % std::variant_size_v<Event>);
    std::vector<std::byte> bytes;
    ASSERT_TRUE(encode_record(event, 5, bytes));
    EXPECT_EQ(bytes.size() % 8, 0u);
    RecordDecoder decoder;
    decoder.add_layout(layout_for(event), {});
    EXPECT_EQ(decoder.time_of_record(bytes), time_of(event));
    Event back;
    ASSERT_EQ(decoder.decode(bytes, back), DecodeOutcome::kEvent) << "variant " << event.index();
    ASSERT_TRUE(equal(event, back)) << "variant " << event.index() << " round " << round;
  }
}

// Every cut and many flips of good records: any outcome, no read outside (the sanitizers watch).
TEST(PerfRecord, DamagedRecordsAreContained) {
  EventMaker maker(11);
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; round++) {
    Event event = maker.make(static_cast<size_t>(round) % std::variant_size_v<Event>);
    std::vector<std::byte> good;
    ASSERT_TRUE(encode_record(event, 5, good));
    RecordDecoder decoder;
    decoder.add_layout(layout_for(event), {});
    Event back;
    for (size_t size = 0; size < good.size(); size++) {
      std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<ptrdiff_t>(size));
      if (size >= 8) {
        uint16_t size16 = static_cast<uint16_t>(size);
        memcpy(cut.data() + 6, &size16, 2);
      }
      decoder.time_of_record(cut);
      if (size < 8) EXPECT_EQ(decoder.decode(cut, back), DecodeOutcome::kMalformed);
      else decoder.decode(cut, back);
    }
    for (int flip = 0; flip < 50; flip++) {
      auto bad = good;
      bad[8 + random() % (bad.size() - 8)] = static_cast<std::byte>(random());
      decoder.decode(bad, back);
    }
  }
}

TEST_P(BothByteOrders, AGroupIsReadWithItsLeader) {
  AttrLayout layout = snapshot_layout();
  layout.sample_type = kWrittenSampleType | PERF_SAMPLE_READ;
  layout.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST | PERF_FORMAT_TOTAL_TIME_ENABLED;
  RecordDecoder reader(GetParam());
  reader.add_layout(layout, {});
  auto raw = record(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
  raw.put(uint64_t{9}).put(uint64_t{0x401000}).put(10).put(11).put(uint64_t{1234}).put(uint32_t{3}).put(0).put(uint64_t{1});
  raw.put(uint64_t{2}).put(uint64_t{777});
  raw.put(uint64_t{1000}).put(uint64_t{41}).put(uint64_t{0}).put(uint64_t{5}).put(uint64_t{42}).put(uint64_t{0});
  raw.put(uint64_t{0});
  ASSERT_EQ(reader.decode(raw.bytes(), event), DecodeOutcome::kEvent);
  auto values = reader.group_values();
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].id, 41u);
  EXPECT_EQ(values[0].count, 1000u);
  EXPECT_EQ(values[1].id, 42u);
  EXPECT_EQ(values[1].count, 5u);
  auto exit = record(PERF_RECORD_EXIT, 0).put(1).put(1).put(1).put(1).put(uint64_t{5}).trailer(1, 1, 5, 0, 0);
  ASSERT_EQ(reader.decode(exit.bytes(), event), DecodeOutcome::kEvent);
  EXPECT_TRUE(reader.group_values().empty());
}

// The chain is there for perf; ours takes the stack from its definition.
TEST(PerfRecord, TheChainOfASampleWithAStackIdIsForOtherReaders) {
  std::vector<uint64_t> user = {0x401000, 0x402000}, kernel = {0xffffffff81000010};
  Sample sample{.time_ns = 5, .task = {7, 8}, .kernel_chain = kernel, .user_chain = user, .stack_id = 3};
  std::vector<std::byte> bytes;
  ASSERT_TRUE(encode_record(sample, 1, bytes));
  AttrLayout as_perf_reads_it = written_layout(sample);
  as_perf_reads_it.has_stack_id = false;
  RecordDecoder theirs, ours;
  theirs.add_layout(as_perf_reads_it, {});
  ours.add_layout(written_layout(sample), {});
  Event event;
  ASSERT_EQ(theirs.decode(bytes, event), DecodeOutcome::kEvent);
  EXPECT_TRUE(std::ranges::equal(std::get<Sample>(event).user_chain, user));
  EXPECT_TRUE(std::ranges::equal(std::get<Sample>(event).kernel_chain, kernel));
  ASSERT_EQ(ours.decode(bytes, event), DecodeOutcome::kEvent);
  EXPECT_EQ(std::get<Sample>(event).stack_id, 3u);
  EXPECT_TRUE(std::get<Sample>(event).user_chain.empty());
}

TEST(PerfRecord, OwnRecordsThatMakeNoSenseAreMalformed) {
  RecordDecoder decoder;
  decoder.add_layout(written_layout({}), {});
  std::vector<uint64_t> chain = {1, 2, 3};
  std::vector<std::byte> good;
  ASSERT_TRUE(encode_record(StackDef{.id = 1, .user_chain = chain}, 1, good));
  Event event;
  for (auto [word, value] : {std::pair<size_t, uint64_t>{1, 99}, {2, 0}, {3, 99}, {4, uint64_t{1} << 61}, {5, 4}}) {
    auto bad = good;
    memcpy(bad.data() + 8 * word, &value, 8);
    EXPECT_EQ(decoder.decode(bad, event), DecodeOutcome::kMalformed) << "word " << word;
  }
  EXPECT_EQ(decoder.decode(good, event), DecodeOutcome::kEvent);
}

TEST(PerfRecord, TooLargeIsRefusedWhole) {
  std::vector<std::byte> memory(65536), out(16);
  auto result = encode_record(StackMemory{.bytes = memory}, 1, out);
  EXPECT_FALSE(result);
  EXPECT_EQ(out.size(), 16u);
}

}  // namespace
}  // namespace cprof::event
