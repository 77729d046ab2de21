#include "analyze/weights.h"

#include <fmt/format.h>

#include <limits>

namespace cprof::analyze {
namespace {

using profile::MetricId;
using profile::Profile;
using Kind = WeightSelection::Kind;

int64_t clamped(uint64_t value) {
  constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(value, kMax));
}

MetricId counting_metric(const Profile& profile) {
  const MetricId samples = find_metric(profile, "samples");
  return samples.valid() ? samples : default_metric(profile);
}

void add_total(Weights& weights) {
  for (const auto* part : {&weights.of_samples, &weights.of_aggregates, &weights.of_off_cpu, &weights.of_resumed})
    for (int64_t w : *part) weights.total = add_clamped(weights.total, w);
}

std::vector<int64_t> clamped(std::span<const uint64_t> values) {
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (uint64_t value : values) result.push_back(clamped(value));
  return result;
}

void add_off_cpu(const Profile& profile, const WeightSelection& selection, MetricId metric, Weights& weights) {
  if (selection.kind == Kind::kWall) {
    weights.of_off_cpu = clamped(selection.wall_off_cpu);
    weights.of_resumed = clamped(selection.wall_resumed);
  } else if (selection.kind == Kind::kMetric && metric.valid() && metric == find_metric(profile, profile::kOffCpuMetric)) {
    for (const auto& interval : profile.off_cpu) weights.of_off_cpu.push_back(profile::off_cpu_value(interval));
  }
}

std::string title_of(const Profile& profile, Kind kind, MetricId metric) {
  if (kind == Kind::kWall) return "wall time";
  if (!metric.valid()) return "samples";
  const std::string_view name = profile.text(profile.metrics[metric.index()].name);
  if (kind == Kind::kSamples && profile.timed() && name != "samples") return fmt::format("samples of {}", name);
  return std::string(name);
}

std::string unit_of(const Profile& profile, Kind kind, MetricId metric) {
  if (kind == Kind::kWall) return "nanoseconds";
  if (!metric.valid() || (kind == Kind::kSamples && profile.timed())) return "count";
  return std::string(profile.text(profile.metrics[metric.index()].unit));
}

}  // namespace

MetricId find_metric(const Profile& profile, std::string_view name) {
  for (size_t i = 0; i < profile.metrics.size(); ++i)
    if (profile.text(profile.metrics[i].name) == name) return MetricId(i);
  return {};
}

MetricId default_metric(const Profile& profile) {
  const std::string_view wanted = profile.text(profile.run.default_metric);
  if (const MetricId named = find_metric(profile, wanted); !wanted.empty() && named.valid()) return named;
  for (size_t i = 0; i < profile.metrics.size(); ++i)
    if (profile.metrics[i].is_time) return MetricId(i);
  return profile.metrics.empty() ? MetricId() : MetricId(size_t{0});
}

Weights sample_weights(const Profile& profile, const WeightSelection& selection) {
  const Kind kind = selection.kind;
  MetricId metric = selection.metric;
  if (!metric.valid())
    metric = kind == Kind::kSamples && !profile.timed() ? counting_metric(profile) : default_metric(profile);

  Weights weights{.of_samples = std::vector<int64_t>(profile.samples.size()),
                  .of_aggregates = std::vector<int64_t>(profile.aggregates.size()),
                  .title = title_of(profile, kind, metric),
                  .unit = unit_of(profile, kind, metric)};
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    if (kind == Kind::kWall) {
      weights.of_samples[i] = i < selection.wall.size() ? clamped(selection.wall[i]) : 0;
    } else if (profile.samples[i].metric == metric) {
      weights.of_samples[i] = kind == Kind::kSamples ? 1 : profile.samples[i].weight;
    }
  }
  if (kind != Kind::kWall)
    for (size_t i = 0; i < profile.aggregates.size(); ++i)
      if (profile.aggregates[i].metric == metric) weights.of_aggregates[i] = profile.aggregates[i].value;
  add_off_cpu(profile, selection, metric, weights);
  add_total(weights);
  return weights;
}

}  // namespace cprof::analyze
