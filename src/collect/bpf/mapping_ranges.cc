#include "collect/bpf/mapping_ranges.h"

#include <algorithm>
#include <bit>

namespace cprof::collect {

std::optional<MappingRanges::Range> MappingRanges::take(uint32_t count) {
  uint32_t size = std::bit_ceil(std::max<uint32_t>(count, 1));
  size_t of_class = static_cast<size_t>(std::countr_zero(size));
  if (of_class >= kClasses) return std::nullopt;
  if (!free_[of_class].empty()) {
    Range range{free_[of_class].back(), size};
    free_[of_class].pop_back();
    return range;
  }
  if (size > size_ - used_) return std::nullopt;
  Range range{used_, size};
  used_ += size;
  return range;
}

void MappingRanges::give_back(Range range, uint64_t now_ns) {
  if (range.size) waiting_.push_back({range, now_ns});
}

void MappingRanges::reclaim(uint64_t now_ns) {
  while (!waiting_.empty() && waiting_.front().since_ns + kGraceNs < now_ns) {
    Range range = waiting_.front().range;
    free_[static_cast<size_t>(std::countr_zero(range.size))].push_back(range.first);
    waiting_.pop_front();
  }
}

}  // namespace cprof::collect
