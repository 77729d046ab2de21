#include "page/values.h"

#include <algorithm>

#include "analyze/weights.h"
#include "timeline/timeline.h"

namespace cprof::page {
namespace {

using profile::MetricId;
using profile::Profile;

std::string_view kind_of(const Profile& profile, const profile::Metric& metric) {
  const std::string_view unit = profile.text(metric.unit);
  if (profile.text(metric.name) == profile::kOffCpuMetric) return "offcpu";
  if (metric.is_time) return "cpu";
  if (unit == "bytes") return "bytes";
  return unit == "count" ? "count" : "custom";
}

class Collector {
 public:
  Collector(const Profile& profile, LineTree& tree) : profile_(profile), tree_(tree) {}

  PageValues run() {
    add_metrics();
    if (profile_.timed()) add_timed();
    for (const profile::Aggregate& row : profile_.aggregates)
      values_.rows.push_back({.node = tree_.node_of(row.site, row.end), .thread = row.thread, .labels = row.labels,
                              .metric = row.metric.value, .value = row.value});
    std::ranges::stable_sort(values_.rows, {}, &ValueRow::time_ns);
    return std::move(values_);
  }

 private:
  void add_metrics() {
    const MetricId wanted = analyze::default_metric(profile_);
    for (size_t i = 0; i < profile_.metrics.size(); ++i) {
      const profile::Metric& metric = profile_.metrics[i];
      values_.metrics.push_back({std::string(profile_.text(metric.name)), std::string(profile_.text(metric.unit)),
                                 std::string(kind_of(profile_, metric)), MetricId(i) == wanted});
    }
    if (!profile_.timed()) return;
    values_.samples_metric = static_cast<uint32_t>(values_.metrics.size());
    values_.metrics.push_back({"samples", "count", "count"});
    values_.wall_metric = static_cast<uint32_t>(values_.metrics.size());
    values_.metrics.push_back({"wall", "nanoseconds", "wall"});
  }

  void add_timed() {
    const timeline::Options options = timeline::resolved(profile_, timeline::default_options(profile_));
    const timeline::WallWeights wall = timeline::wall_weights(profile_, options);
    for (size_t i = 0; i < profile_.samples.size(); ++i) {
      const profile::Sample& s = profile_.samples[i];
      values_.rows.push_back({.node = tree_.node_of(s.site, s.end), .thread = s.thread, .labels = s.labels,
                              .time_ns = s.time_ns, .metric = s.metric.value, .value = s.weight,
                              .wall_ns = static_cast<int64_t>(wall.of_samples[i]), .is_sample = s.metric == options.metric});
    }
    add_waits(wall);
  }

  void add_waits(const timeline::WallWeights& wall) {
    const MetricId metric = analyze::find_metric(profile_, profile::kOffCpuMetric);
    for (size_t i = 0; i < profile_.off_cpu.size(); ++i) {
      const profile::OffCpuInterval& off = profile_.off_cpu[i];
      ValueRow row{.node = tree_.node_of(off.site, off.end), .thread = off.thread, .time_ns = off.start_ns};
      row.wall_ns = static_cast<int64_t>(wall.of_off_cpu[i]);
      if (metric.valid()) row.metric = metric.value, row.value = profile::off_cpu_value(off);
      values_.rows.push_back(row);
      if (wall.of_resumed[i] == 0) continue;
      row = {.node = tree_.node_of(profile::user_part(profile_, off.site), off.end), .thread = off.thread, .time_ns = off.end_ns};
      row.wall_ns = static_cast<int64_t>(wall.of_resumed[i]);
      values_.rows.push_back(row);
    }
  }

  const Profile& profile_;
  LineTree& tree_;
  PageValues values_;
};

}  // namespace

PageValues collect_values(const Profile& profile, LineTree& tree) { return Collector(profile, tree).run(); }

}  // namespace cprof::page
