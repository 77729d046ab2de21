// The samples of one metric, grouped by thread without copying them. Private to timeline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.h"

namespace cprof::timeline {

class ThreadSamples {
 public:
  ThreadSamples(const profile::Profile& profile, profile::MetricId metric);

  // Indexes into profile.samples, in time order.
  std::span<const uint32_t> of(size_t thread) const {
    return std::span(rows_).subspan(first_[thread], first_[thread + 1] - first_[thread]);
  }

 private:
  std::vector<uint32_t> first_, rows_;
};

}  // namespace cprof::timeline
