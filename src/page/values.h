// What the page can weigh a profile by, and every value of it with its place in the tree: samples, waits and untimed sums
// alike. Used by the payload encoder.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "page/line_tree.h"
#include "profile/profile.h"

namespace cprof::page {

struct PageMetric {
  std::string name, unit;
  std::string kind;  // "cpu" | "wall" | "offcpu" | "count" | "bytes" | "custom"
  bool is_default = false;
};

// One value: of a sample, of the user part of a stack after a wait, of a wait, or an untimed sum.
struct ValueRow {
  uint32_t node = 0;
  profile::ThreadId thread{};  // invalid: unknown
  profile::LabelSetId labels{};
  uint64_t time_ns = 0;        // 0: untimed
  uint32_t metric = 0;         // of `value`
  int64_t value = 0;
  int64_t wall_ns = 0;         // counts for the metric wall
  bool is_sample = false;      // counts 1 for the metric samples
};

struct PageValues {
  static constexpr uint32_t kNone = 0xffffffff;
  std::vector<PageMetric> metrics;
  uint32_t samples_metric = kNone, wall_metric = kNone;  // which of metrics; kNone: the profile is not timed
  std::vector<ValueRow> rows;                            // by time, untimed ones first
};

PageValues collect_values(const profile::Profile& profile, LineTree& tree);

// The values of one row in every metric that it counts for.
template <typename OnValue>
void for_each_metric(const PageValues& values, const ValueRow& row, OnValue&& on_value) {
  if (row.value != 0) on_value(row.metric, row.value);
  if (row.is_sample && values.samples_metric != PageValues::kNone) on_value(values.samples_metric, int64_t{1});
  if (row.wall_ns != 0 && values.wall_metric != PageValues::kNone) on_value(values.wall_metric, row.wall_ns);
}

}  // namespace cprof::page
