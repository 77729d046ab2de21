// Which value a one-value format (folded, text of an import) writes for each stack, by --weight and --metric. Pure.
#pragma once

#include <functional>
#include <vector>

#include "analyze/weights.h"
#include "base/result.h"
#include "format/format.h"
#include "profile/profile.h"
#include "timeline/timeline.h"

namespace cprof::format {

struct StackValue {
  profile::CallSiteId site;   // invalid: a sample without a stack
  profile::ThreadId thread;   // invalid: unknown
  int64_t value = 0;
  profile::StackEnd end = profile::StackEnd::kComplete;
};

// What was chosen: samples count 1 each, or give their weight, or their time on the timeline.
struct ValueChoice {
  enum class Kind : uint8_t { kCount, kWeight, kWall };
  Kind kind = Kind::kCount;
  profile::MetricId metric;
  int64_t divisor = 1;        // 1000 for times in microseconds, after summing
};

// An error names what the profile has instead.
Result<ValueChoice> choose_value(const profile::Profile& profile, const WriteOptions& options);

// Every sample, aggregate and off-CPU interval of the choice, in the profile's order; undivided.
void for_each_value(const profile::Profile& profile, const ValueChoice& choice,
                    const std::function<void(const StackValue&)>& on_value);

// Whether the intervals of profile.off_cpu are values of this metric.
bool counts_off_cpu(const profile::Profile& profile, profile::MetricId metric);

// The timeline that fits this profile, made of that metric's samples.
timeline::Options timeline_options(const profile::Profile& profile, profile::MetricId metric);

using analyze::add_clamped;

}  // namespace cprof::format
