#include "symbolize/interval_map.h"

#include <algorithm>
#include <queue>

namespace cprof::symbolize {
namespace {

struct Weaker {
  bool operator()(const Interval* a, const Interval* b) const {
    return a->priority != b->priority ? a->priority < b->priority : a->payload < b->payload;
  }
};

}  // namespace

void IntervalMap::append(uint64_t start, uint32_t payload) {
  if (!starts_.empty() && starts_.back() == start) {  // nothing showed for zero bytes
    starts_.pop_back();
    payloads_.pop_back();
  }
  if (!payloads_.empty() && payloads_.back() == payload) return;
  starts_.push_back(start);
  payloads_.push_back(payload);
}

// Sweeps upwards over the starts. `open` holds what began; its top is what shows until it ends or a stronger begins.
IntervalMap::IntervalMap(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& i) { return i.end <= i.start; });
  auto by_start = [](const Interval& a, const Interval& b) { return a.start < b.start; };
  if (!std::is_sorted(intervals.begin(), intervals.end(), by_start)) {
    std::sort(intervals.begin(), intervals.end(), by_start);
  }
  starts_.reserve(intervals.size() + 1);
  payloads_.reserve(intervals.size() + 1);

  std::priority_queue<const Interval*, std::vector<const Interval*>, Weaker> open;
  auto close_until = [&](uint64_t limit) {  // lets tops end that end at or below limit
    while (!open.empty() && open.top()->end <= limit) {
      uint64_t end = open.top()->end;
      while (!open.empty() && open.top()->end <= end) open.pop();
      append(end, open.empty() ? kNone : open.top()->payload);
    }
  };
  for (const Interval& interval : intervals) {
    close_until(interval.start);
    open.push(&interval);
    append(interval.start, open.top()->payload);
  }
  close_until(UINT64_MAX);
}

uint32_t IntervalMap::find(uint64_t address) const {
  auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  return after == starts_.begin() ? kNone : payloads_[static_cast<size_t>(after - starts_.begin()) - 1];
}

}  // namespace cprof::symbolize
