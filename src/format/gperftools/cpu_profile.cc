// Header: 0, the number of header words that follow these two (3), version 0 (1: Java), the period in microseconds, 0.
// Each sample: its count, the stack's size, the stack leaf first. The end: 0, 1, 0. What the signal handler pushed stands
// as the second frame, the same one in nearly all samples, sometimes two of them; they are taken out, and a leaf that
// stands there twice, since it came from the signal's registers and from the unwinder, once.
#include "format/gperftools/cpu_profile.h"
#include "base/number_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cprof::format {
namespace {

constexpr uint64_t kHeaderWords = 3;
constexpr uint64_t kMaxPeriodUs = INT64_MAX / 1000;
constexpr int kHandlerFrames = 2;           // at most
constexpr size_t kSamplesPerException = 32;  // one in so many may lack the handler's frame

uint64_t word_at(std::string_view bytes, size_t index, WordShape shape) {
  uint64_t value = 0;
  for (unsigned i = 0; i < shape.size; ++i) {
    const unsigned at = shape.is_big ? i : shape.size - 1 - i;
    value = value << 8 | static_cast<unsigned char>(bytes[index * shape.size + at]);
  }
  return value;
}

// Stacks of the whole file, for what is common to them is known at the end only.
class CpuStacks {
 public:
  void add(uint64_t count, std::span<const uint64_t> leaf_first) {
    rows_.push_back({words_.size(), static_cast<uint32_t>(leaf_first.size()), count});
    words_.insert(words_.end(), leaf_first.begin(), leaf_first.end());
  }

  void drop_handler_frames() {
    for (int i = 0; i < kHandlerFrames; ++i) {
      const auto common = common_second();
      if (!common) return;
      for (Row& row : rows_)
        if (row.size > 1 && words_[row.first + 1] == *common) drop_second(row);
    }
  }

  void drop_double_leaves() {
    for (Row& row : rows_)
      if (row.size > 1 && words_[row.first] == words_[row.first + 1]) drop_second(row);
  }

  struct Row {
    size_t first;
    uint32_t size;
    uint64_t count;
  };
  const std::vector<Row>& rows() const { return rows_; }
  std::span<const uint64_t> stack(const Row& row) const { return std::span(words_).subspan(row.first, row.size); }

 private:
  // The leaf moves up by one: nothing else has to.
  void drop_second(Row& row) {
    words_[row.first + 1] = words_[row.first];
    ++row.first;
    --row.size;
  }

  std::optional<uint64_t> common_second() const {
    NumberMap<uint64_t, size_t> counts;
    for (const Row& row : rows_)
      if (row.size > 1) ++counts[words_[row.first + 1]];
    const size_t enough = rows_.size() - rows_.size() / kSamplesPerException;
    for (const auto& [word, count] : counts)
      if (count >= enough) return word;
    return std::nullopt;
  }

  std::vector<Row> rows_;
  std::vector<uint64_t> words_;
};

class CpuReader {
 public:
  CpuReader(LegacyStream& stream, const CpuHeader& header) : stream_(stream), header_(header) {}

  Result<void> read(LegacyProfile& profile) {
    for (uint64_t i = 0; i < kHeaderWords + 2; ++i) TRY(word());
    while (!TRY(read_sample())) {
    }
    if (!header_.is_java) {
      stacks_.drop_handler_frames();
      stacks_.drop_double_leaves();
    }
    return give_to(profile);
  }

 private:
  Result<uint64_t> word() {
    auto value = TRY(stream_.word(header_.shape));
    if (!value)
      return fail(fmt::format("{}: the samples end early, at byte {}", stream_.name(), stream_.position()));
    return *value;
  }

  // True: that was the end.
  Result<bool> read_sample() {
    const uint64_t at = stream_.position();
    const uint64_t count = TRY(word()), size = TRY(word());
    constexpr uint64_t kMaxStack = 1 << 20;
    if (size == 0 || size > kMaxStack)
      return fail(fmt::format("{}: byte {}: a stack of {} frames", stream_.name(), at, size));
    stack_.clear();
    for (uint64_t i = 0; i < size; ++i) stack_.push_back(TRY(word()));
    if (count == 0 && size == 1 && stack_[0] == 0) return true;
    if (count > static_cast<uint64_t>(INT64_MAX))
      return fail(fmt::format("{}: byte {}: a count of {}", stream_.name(), at, count));
    stacks_.add(count, stack_);
    return false;
  }

  Result<void> give_to(LegacyProfile& profile) const {
    const auto period_ns = static_cast<int64_t>(header_.period_us * 1000);
    for (const auto& row : stacks_.rows()) {
      std::array<int64_t, 2> values{static_cast<int64_t>(row.count), 0};
      if (__builtin_mul_overflow(values[0], period_ns, &values[1]))
        return fail(fmt::format("{}: {} samples of {} ns are more than 64 bits hold", profile.name(), row.count,
                                period_ns));
      profile.add_stack(stacks_.stack(row), values);
    }
    return {};
  }

  LegacyStream& stream_;
  const CpuHeader& header_;
  CpuStacks stacks_;
  std::vector<uint64_t> stack_;
};

}  // namespace

std::optional<CpuHeader> parse_cpu_header(std::string_view head) {
  for (WordShape shape : {WordShape{4, false}, WordShape{4, true}, WordShape{8, false}, WordShape{8, true}}) {
    if (head.size() < (kHeaderWords + 2) * shape.size) continue;
    const auto word = [&](size_t i) { return word_at(head, i, shape); };
    const bool is_header = word(0) == 0 && word(1) == kHeaderWords && word(2) <= 1 && word(3) > 0 &&
                           word(3) <= kMaxPeriodUs && word(4) == 0;
    if (is_header) return CpuHeader{shape, word(3), word(2) == 1};
  }
  return std::nullopt;
}

Result<void> read_cpu_samples(LegacyStream& stream, const CpuHeader& header, LegacyProfile& profile) {
  const uint64_t period_ns = header.period_us * 1000;
  profile.add_metric("samples", "count");
  profile.add_metric("cpu", "nanoseconds", period_ns, true);
  profile.profile().run.sampling_interval_ns = period_ns;
  if (header.is_java) profile.set_numbered();
  profile.set_exact_leaves();
  return CpuReader(stream, header).read(profile);
}

}  // namespace cprof::format
