// Places in the BPF programs' array of mappings: ranges of powers of two, given back only some time after their last use,
// because a program may still be reading. Used by ProcessBook.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace cprof::collect {

class MappingRanges {
 public:
  static constexpr uint64_t kGraceNs = 1'000'000'000;

  explicit MappingRanges(uint32_t size) : size_(size) {}

  struct Range {
    uint32_t first = 0, size = 0;  // size 0: none
  };
  // Room for count entries; nothing when all is taken.
  std::optional<Range> take(uint32_t count);
  // now_ns: all that a program may have been told of the range was told before.
  void give_back(Range range, uint64_t now_ns);
  // Makes what was given back long enough ago available again.
  void reclaim(uint64_t now_ns);

 private:
  static constexpr size_t kClasses = 13;  // 1 .. 4,096 entries
  struct Waiting {
    Range range;
    uint64_t since_ns;
  };

  uint32_t size_, used_ = 0;
  std::array<std::vector<uint32_t>, kClasses> free_;
  std::deque<Waiting> waiting_;
};

}  // namespace cprof::collect
