#include "pipeline/counts.h"

#include <algorithm>
#include <limits>

namespace cprof::pipeline {
namespace {

int64_t clamped(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max()));
}

}  // namespace

// The metric whose samples are told as such: CPU time where it is among them.
profile::MetricId Counts::main_metric() const {
  const auto& rows = builder_.profile().metrics;
  auto time = std::ranges::find_if(metrics_, [&](profile::MetricId id) { return rows[id.index()].is_time; });
  return time != metrics_.end() ? *time : metrics_.front();
}

void Counts::add(profile::MetricId metric, profile::ThreadId thread, const KnownStack& stack, uint64_t samples,
                 uint64_t weight) {
  profile::Aggregate row{.site = stack.site, .metric = metric, .value = clamped(weight), .thread = thread, .end = stack.end};
  builder_.add_aggregate(row);
  if (metric != main_metric()) return;
  row.metric = samples_;
  row.value = clamped(samples);
  builder_.add_aggregate(row);
}

void Counts::add(const event::Count& count, profile::ThreadId thread, const KnownStack& stack) {
  if (!samples_.valid()) samples_ = builder_.add_metric("samples", "count");
  add(metrics_[count.metric], thread, stack, count.samples, count.weight);
}

void Counts::finish() {
  if (!samples_.valid()) return;
  profile::Profile& profile = builder_.profile();
  for (const profile::Sample& sample : profile.samples)
    add(sample.metric, sample.thread, {sample.site, sample.end}, 1, static_cast<uint64_t>(sample.weight));
  profile.samples.clear();
}

}  // namespace cprof::pipeline
