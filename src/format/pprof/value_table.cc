#include "format/pprof/value_table.h"

#include "analyze/weights.h"
#include "format/values.h"

namespace cprof::format {
namespace {

using profile::Metric;
using profile::MetricId;
using Source = ValueColumn::Source;

constexpr std::string_view kNanoseconds = "nanoseconds";

// A clock's counts are CPU time, which other tools know by one name.
std::string_view type_name(const profile::Profile& profile, const Metric& metric) {
  const std::string_view name = profile.text(metric.name);
  return name == "cpu-clock" || name == "task-clock" ? "cpu" : name;
}

}  // namespace

ValueTable::ValueTable(const profile::Profile& profile) : profile_(profile) {
  if (profile.timed()) choose_recording_columns();
  else choose_import_columns();
  choose_period();
  columns_of_metric_.resize(profile.metrics.size());
  for (size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].metric.valid()) columns_of_metric_[columns_[i].metric.index()].push_back(i);
  add_samples();
  add_aggregates();
}

// samples, cpu (where samples can be told as time) and wall of the main metric, then its own weight when that is not
// time, then every other metric: offcpu, page-faults, ...
void ValueTable::choose_recording_columns() {
  const MetricId main = analyze::default_metric(profile_);
  const Metric& metric = profile_.metrics[main.index()];
  const bool has_cpu = metric.is_time || profile_.run.sampling_interval_ns != 0;
  columns_.push_back({"samples", "count", Source::kCount, main});
  if (has_cpu) columns_.push_back({"cpu", kNanoseconds, Source::kCpu, main});
  columns_.push_back({"wall", kNanoseconds, Source::kWall, main});
  default_type_ = has_cpu ? "cpu" : "samples";
  for (size_t i = 0; i < profile_.metrics.size(); ++i) {
    const Metric& other = profile_.metrics[i];
    if (MetricId(i) == main && (metric.is_time || profile_.text(other.name) == "samples")) continue;
    columns_.push_back({profile_.text(other.name), profile_.text(other.unit), Source::kWeight, MetricId(i)});
  }
}

void ValueTable::choose_import_columns() {
  for (size_t i = 0; i < profile_.metrics.size(); ++i)
    columns_.push_back({type_name(profile_, profile_.metrics[i]), profile_.text(profile_.metrics[i].unit),
                        Source::kWeight, MetricId(i)});
  const MetricId main = analyze::default_metric(profile_);
  if (main.valid()) default_type_ = type_name(profile_, profile_.metrics[main.index()]);
}

void ValueTable::choose_period() {
  if (profile_.run.period > 0) {
    period_type_ = profile_.run.period_type;
    period_unit_ = profile_.run.period_unit;
    period_ = profile_.run.period;
    return;
  }
  if (profile_.timed()) {
    if (columns_[1].source != Source::kCpu) return;
    period_type_ = "cpu";
    period_unit_ = kNanoseconds;
    period_ = static_cast<int64_t>(profile_.run.sampling_interval_ns);
    return;
  }
  for (const Metric& metric : profile_.metrics) {
    if (metric.period == 0 || metric.period > INT64_MAX) continue;
    period_type_ = type_name(profile_, metric);
    period_unit_ = profile_.text(metric.unit);
    period_ = static_cast<int64_t>(metric.period);
    return;
  }
}

int64_t ValueTable::cpu_of(const profile::Sample& sample) const {
  if (profile_.metrics[sample.metric.index()].is_time) return sample.weight;
  return static_cast<int64_t>(profile_.run.sampling_interval_ns);
}

void ValueTable::add_samples() {
  if (profile_.samples.empty()) return;
  const auto wall = timeline::wall_weights(profile_, timeline_options(profile_, analyze::default_metric(profile_)));
  for (size_t i = 0; i < profile_.samples.size(); ++i) {
    const profile::Sample& sample = profile_.samples[i];
    const Row row{sample.site, sample.thread, sample.labels};
    for (size_t column : columns_of_metric_[sample.metric.index()]) {
      switch (columns_[column].source) {
        case Source::kCount: add(row, column, 1); break;
        case Source::kCpu: add(row, column, cpu_of(sample)); break;
        case Source::kWall: add(row, column, static_cast<int64_t>(wall[i])); break;
        case Source::kWeight: add(row, column, sample.weight); break;
      }
    }
  }
}

void ValueTable::add_aggregates() {
  for (const profile::Aggregate& aggregate : profile_.aggregates)
    for (size_t column : columns_of_metric_[aggregate.metric.index()])
      if (columns_[column].source == Source::kWeight)
        add({aggregate.site, aggregate.thread, aggregate.labels}, column, aggregate.value);
}

void ValueTable::add(const Row& row, size_t column, int64_t value) {
  const uint64_t hash =
      profile::hash_join(profile::hash_join(row.site.value, row.thread.value), row.labels.value);
  auto equal = [&](uint32_t i) {
    return rows_[i].site == row.site && rows_[i].thread == row.thread && rows_[i].labels == row.labels;
  };
  const size_t i = index_.find_or_add(hash, equal, [&] {
    rows_.push_back(row);
    values_.resize(values_.size() + columns_.size());
    return static_cast<uint32_t>(rows_.size() - 1);
  });
  int64_t& sum = values_[i * columns_.size() + column];
  sum = add_clamped(sum, value);
}

}  // namespace cprof::format
