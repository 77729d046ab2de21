#include "format/values.h"

#include <fmt/format.h>

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
  return names.empty() ? "none (marks and counters are no values of stacks)" : names;
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

namespace {

// Of a recording of several events only one is in such a file, unless the user named it.
void count_other_events(const Profile& profile, MetricId chosen, Diagnostics& losses) {
  uint64_t others = 0;
  std::string first;
  for (const profile::Sample& sample : profile.samples) {
    if (sample.metric == chosen || !sample.metric.valid()) continue;
    if (others++ == 0) first = profile.text(profile.metrics[sample.metric.index()].name);
  }
  if (others)
    losses.add("samples_of_other_events", Severity::kNotice,
               "samples of other events than the one written, of which this format holds one; --metric NAME chooses it", others, first);
}

}  // namespace

Result<ValueChoice> choose_value(const Profile& profile, const WriteOptions& options) {
  if (!options.metric.empty()) {
    MetricId metric = find_metric(profile, options.metric);
    if (!metric.valid()) return no_metric(profile, fmt::format("metric \"{}\"", options.metric));
    return weight_of(profile, metric, false);
  }
  switch (options.weight) {
    case Weight::kSamples: {
      const ValueChoice choice = TRY(choose_samples(profile));
      if (options.losses && profile.timed()) count_other_events(profile, choice.metric, *options.losses);
      return choice;
    }
    case Weight::kOffCpu: return choose_named(profile, profile::kOffCpuMetric, "off-CPU times (record --off-cpu)");
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

namespace {

void for_each_wall_value(const Profile& profile, const ValueChoice& choice,
                         const std::function<void(const StackValue&)>& on_value) {
  const auto wall = timeline::wall_weights(profile, timeline_options(profile, choice.metric));
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const profile::Sample& sample = profile.samples[i];
    if (sample.metric == choice.metric)
      on_value({sample.site, sample.thread, static_cast<int64_t>(wall.of_samples[i]), sample.end});
  }
  for (size_t i = 0; i < profile.off_cpu.size(); ++i) {
    const profile::OffCpuInterval& off = profile.off_cpu[i];
    if (wall.of_off_cpu[i]) on_value({off.site, off.thread, static_cast<int64_t>(wall.of_off_cpu[i]), off.end});
    if (!wall.of_resumed[i]) continue;
    on_value({profile::user_part(profile, off.site), off.thread, static_cast<int64_t>(wall.of_resumed[i]), off.end});
  }
}

}  // namespace

bool counts_off_cpu(const Profile& profile, MetricId metric) {
  return !profile.off_cpu.empty() && metric.valid() && metric == find_metric(profile, profile::kOffCpuMetric);
}

void for_each_value(const Profile& profile, const ValueChoice& choice,
                    const std::function<void(const StackValue&)>& on_value) {
  if (choice.kind == ValueChoice::Kind::kWall) return for_each_wall_value(profile, choice, on_value);
  for (const profile::Sample& sample : profile.samples) {
    if (sample.metric != choice.metric) continue;
    const int64_t value = choice.kind == ValueChoice::Kind::kCount ? 1 : sample.weight;
    on_value({sample.site, sample.thread, value, sample.end});
  }
  if (choice.kind == ValueChoice::Kind::kWeight && counts_off_cpu(profile, choice.metric))
    for (const profile::OffCpuInterval& off : profile.off_cpu)
      on_value({off.site, off.thread, profile::off_cpu_value(off), off.end});
  for (const profile::Aggregate& row : profile.aggregates)
    if (row.metric == choice.metric) on_value({row.site, row.thread, row.value, row.end});
}

}  // namespace cprof::format
