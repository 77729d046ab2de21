#include "event/group_deltas.h"

#include <utility>

namespace cprof::event {

std::span<const Sample> GroupDeltas::expand(Sample& sample, std::span<const GroupValue> values) {
  others_.clear();
  auto& counts = last_[by_cpu_ ? 0 : sample.task.tid];
  for (const GroupValue& value : values) {
    auto metric = metric_of_id_.find(value.id);
    if (metric == metric_of_id_.end()) {
      unknown_++;
      continue;
    }
    uint64_t before = std::exchange(counts[value.id], value.count);
    uint64_t delta = value.count >= before ? value.count - before : value.count;  // a new thread of an old number
    if (metric->second == sample.metric) {
      sample.period = delta;
    } else if (delta != 0) {
      others_.push_back({.time_ns = sample.time_ns, .task = sample.task, .cpu = sample.cpu, .metric = metric->second,
                         .period = delta, .in_kernel = sample.in_kernel, .repeats_stack = true});
    }
  }
  return others_;
}

}  // namespace cprof::event
