// Events that are counted together: a sample of the first carries what all of them have counted so far; what they
// counted since the sample before is the weight of each. Used where such records are decoded: by the live collector and by
// the reader of perf.data. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/number_map.h"
#include "event/event.h"
#include "event/perf_record.h"

namespace cprof::event {

class GroupDeltas {
 public:
  // by_cpu: an event counts all that runs on its CPU; else each thread has its own counts.
  explicit GroupDeltas(bool by_cpu = false) : by_cpu_(by_cpu) {}

  void add_event(uint64_t id, uint32_t metric) { metric_of_id_[id] = metric; }

  // Sets the sample's period to what its own event counted, and gives a sample of the same stack for each other event that
  // counted anything. Valid until the next call.
  std::span<const Sample> expand(Sample& sample, std::span<const GroupValue> values);

  // Values so far whose id is no event's.
  uint64_t unknown() const { return unknown_; }

  void thread_ended(int32_t tid) { last_.erase(tid); }

 private:
  bool by_cpu_;
  NumberMap<uint64_t, uint32_t> metric_of_id_;
  NumberMap<int32_t, NumberMap<uint64_t, uint64_t>> last_;  // thread, event id -> count
  std::vector<Sample> others_;
  uint64_t unknown_ = 0;
};

}  // namespace cprof::event
