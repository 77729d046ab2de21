// Overlapping intervals flattened once into disjoint, sorted segments, of which the one of the highest priority shows;
// then binary search. Perf maps (later wins), symbols (innermost wins) and inlined scopes (deepest wins) are all this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cprof::symbolize {

struct Interval {
  uint64_t start = 0, end = 0;  // [start, end); empty ones are ignored
  uint64_t priority = 0;        // higher wins; of equals the higher payload
  uint32_t payload = 0;
};

class IntervalMap {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  IntervalMap() = default;
  explicit IntervalMap(std::vector<Interval> intervals);  // O(n log n)

  uint32_t find(uint64_t address) const;  // a payload or kNone
  bool empty() const { return starts_.empty(); }

 private:
  void append(uint64_t start, uint32_t payload);

  std::vector<uint64_t> starts_;    // each segment reaches to the next start
  std::vector<uint32_t> payloads_;  // kNone: a gap
};

}  // namespace cprof::symbolize
