#include "format/values.h"

#include <fmt/format.h>

#include <limits>

#include "analyze/weights.h"

namespace cprof::format {
namespace {

using analyze::default_metric;
using analyze::find_metric;
using profile::MetricId;
using profile::Profile;

constexpr int64_t kMicrosecond = 1000;

std::string names_of_metrics(const Profile& profile) {
  std::string names;
  for (const auto& metric : profile.metrics) {
    if (!names.empty()) names += ", ";
    names += profile.text(metric.name);
  }
  return names.empty() ? "none" : names;
}

std::unexpected<Error> no_metric(const Profile& profile, std::string_view what) {
  return fail(fmt::format("this profile has no {}; its metrics: {}", what, names_of_metrics(profile)));
}

// Times are written in microseconds whatever the import called them.
ValueChoice weight_of(const Profile& profile, MetricId metric, bool as_time) {
  bool nanoseconds = profile.text(profile.metrics[metric.index()].unit) == "nanoseconds";
  return {ValueChoice::Kind::kWeight, metric, as_time && nanoseconds ? kMicrosecond : 1};
}

Result<ValueChoice> choose_named(const Profile& profile, std::string_view name, std::string_view what) {
  MetricId metric = find_metric(profile, name);
  if (!metric.valid()) return no_metric(profile, what);
  return weight_of(profile, metric, true);
}

Result<ValueChoice> choose_samples(const Profile& profile) {
  MetricId metric = default_metric(profile);
  if (profile.timed()) return ValueChoice{ValueChoice::Kind::kCount, metric, 1};
  MetricId samples = find_metric(profile, "samples");
  if (samples.valid()) metric = samples;
  if (!metric.valid()) return no_metric(profile, "values");
  return weight_of(profile, metric, false);
}

}  // namespace

Result<ValueChoice> choose_value(const Profile& profile, const WriteOptions& options) {
  if (!options.metric.empty()) {
    MetricId metric = find_metric(profile, options.metric);
    if (!metric.valid()) return no_metric(profile, fmt::format("metric \"{}\"", options.metric));
    return weight_of(profile, metric, false);
  }
  switch (options.weight) {
    case Weight::kSamples: return choose_samples(profile);
    case Weight::kOffCpu: return choose_named(profile, "offcpu", "off-CPU times");
    case Weight::kWall: break;
  }
  if (profile.timed()) return ValueChoice{ValueChoice::Kind::kWall, default_metric(profile), kMicrosecond};
  return choose_named(profile, "wall", "wall times");
}

timeline::Options timeline_options(const Profile& profile, MetricId metric) {
  timeline::Options options = timeline::default_options(profile);
  options.metric = metric;
  return options;
}

void for_each_value(const Profile& profile, const ValueChoice& choice,
                    const std::function<void(const StackValue&)>& on_value) {
  std::vector<uint64_t> wall;
  if (choice.kind == ValueChoice::Kind::kWall)
    wall = timeline::wall_weights(profile, timeline_options(profile, choice.metric));
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const profile::Sample& sample = profile.samples[i];
    if (sample.metric != choice.metric) continue;
    int64_t value = choice.kind == ValueChoice::Kind::kCount ? 1 : sample.weight;
    if (choice.kind == ValueChoice::Kind::kWall) value = static_cast<int64_t>(wall[i]);
    on_value({sample.site, sample.thread, value, sample.end});
  }
  if (choice.kind == ValueChoice::Kind::kWall) return;
  for (const profile::Aggregate& row : profile.aggregates)
    if (row.metric == choice.metric) on_value({row.site, row.thread, row.value, row.end});
}

int64_t add_clamped(int64_t a, int64_t b) {
  int64_t sum;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace cprof::format
