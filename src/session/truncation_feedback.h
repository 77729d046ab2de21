// How the pipeline's unwinding comes back to the collector while a recording goes on. Used by session::record() and
// LiveRecording, on their thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pipeline/pipeline.h"
#include "session/collectors.h"

namespace cprof::session {

// Tells the collector how many stacks its snapshots cut, or nearly cut, so that it takes larger ones in time: of the last
// second, but as soon as there are too many of them for a whole second.
class TruncationFeedback {
 public:
  explicit TruncationFeedback(uint64_t samples_per_second) : samples_per_second_(samples_per_second) {}

  void tell(RunningCollector& collector, const pipeline::Pipeline& pipeline, uint64_t time_ns) {
    auto counts = pipeline.stack_counts();
    uint64_t truncated = counts.truncated + counts.nearly_cut - last_.truncated - last_.nearly_cut;
    uint64_t unwound = counts.unwound - last_.unwound;
    bool is_over = time_ns >= next_ns_;
    if (!is_over && truncated == 0) return;
    collector.note_truncated(truncated, is_over ? unwound : std::max(unwound, samples_per_second_));
    if (!is_over) return;
    next_ns_ = time_ns + kIntervalNs;
    last_ = counts;
  }

 private:
  static constexpr uint64_t kIntervalNs = 1'000'000'000;
  uint64_t samples_per_second_;
  pipeline::Pipeline::StackCounts last_;
  uint64_t next_ns_ = 0;
};

}  // namespace cprof::session
