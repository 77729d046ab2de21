// The samples of one metric, and the rows of a table sorted by thread, grouped by thread without copying them. Private to
// timeline.
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

// The part of rows (sorted by thread) that belongs to the thread. Asked for one thread after the other, it moves on.
template <typename Row>
class ThreadRows {
 public:
  explicit ThreadRows(const std::vector<Row>& rows) : rows_(rows) {}

  struct Part {
    std::span<const Row> rows;
    size_t first = 0;  // where it begins in the table
  };
  Part next(size_t thread) {
    const size_t first = at_;
    while (at_ < rows_.size() && rows_[at_].thread.index() == thread) ++at_;
    return {std::span(rows_).subspan(first, at_ - first), first};
  }

 private:
  const std::vector<Row>& rows_;
  size_t at_ = 0;
};

}  // namespace cprof::timeline
