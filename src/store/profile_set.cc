#include "store/profile_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/weights.h"
#include "base/container_name.h"
#include "profile/row_index.h"
#include "store/run_facts.h"
#include "store/slice_parents.h"
#include "timeline/timeline.h"

namespace cprof::store {
namespace {

using profile::Profile;

bool has_unknown_stack(const Profile& profile) {
  auto is_unknown = [](const auto& row) { return !row.site.valid(); };
  return std::ranges::any_of(profile.aggregates, is_unknown) || std::ranges::any_of(profile.samples, is_unknown) ||
         std::ranges::any_of(profile.off_cpu, is_unknown);
}

// Sums into one row for each (metric, site, labels), in the order of first sight.
class AggregateSums {
 public:
  explicit AggregateSums(const Profile& profile) : unknown_(static_cast<uint32_t>(profile.sites.size())) {}

  void add(profile::MetricId metric, profile::CallSiteId site, profile::LabelSetId labels, int64_t value) {
    const AggregateRow row{metric.value, site.valid() ? site.value : unknown_, labels, 0};
    const uint64_t hash = profile::hash_join(profile::hash_join(row.metric, row.site), labels.value);
    const uint32_t at = index_.find_or_add(
        hash,
        [&](uint32_t other) {
          return rows_[other].metric == row.metric && rows_[other].site == row.site && rows_[other].labels == labels;
        },
        [&] {
          rows_.push_back(row);
          return static_cast<uint32_t>(rows_.size() - 1);
        });
    rows_[at].value = analyze::add_clamped(rows_[at].value, value);
  }

  std::vector<AggregateRow> take() { return std::move(rows_); }

 private:
  uint32_t unknown_;
  std::vector<AggregateRow> rows_;
  profile::RowIndex index_;
};

// Whether no two rows differ in their thread or end only: then there is nothing to sum.
bool are_distinct(const std::vector<profile::Aggregate>& rows) {
  return std::ranges::all_of(rows, [&](const auto& row) { return !row.thread.valid() && row.end == rows.front().end; });
}

}  // namespace

ProfileSource::ProfileSource(std::shared_ptr<const Profile> profile, std::string scope, ProfileSource* before)
    : held_(std::move(profile)),
      profile_(*held_),
      scope_(std::move(scope)),
      before_(before),
      bases_(before ? before->next_bases() : Bases{}),
      walker_(profile_) {
  has_unknown_ = has_unknown_stack(profile_);
  has_unmapped_ =
      has_unknown_ || std::ranges::any_of(profile_.locations, [](const auto& l) { return !l.mapping.valid(); });
  first_symbol_.reserve(profile_.locations.size() + 1);
  first_symbol_.push_back(0);
  for (const auto& location : profile_.locations) first_symbol_.push_back(first_symbol_.back() + location.line_count);
  is_counter_.resize(profile_.tracks.size());
  for (const auto& value : profile_.counters) is_counter_[value.track.index()] = true;
  for (const auto& metric : profile_.metrics) {
    const std::string_view name = profile_.text(metric.name);
    metric_names_.push_back(fmt::format("pprof {}", name.empty() ? "unknown" : name));
  }
  for (const auto& process : profile_.processes) containers_.push_back(container_of(profile_.text(process.cgroup)));
}

ProfileSource::Bases ProfileSource::next_bases() const {
  Bases next = bases_;
  next.process += static_cast<int64_t>(profile_.processes.size());
  next.thread += static_cast<int64_t>(profile_.threads.size());
  next.mapping += mapping_count();
  next.frame += frame_count();
  next.site += site_count();
  next.symbol += symbol_count();
  next.metric += static_cast<int64_t>(profile_.metrics.size());
  next.label_set += static_cast<int64_t>(profile_.label_sets.size());
  next.track += track_count();
  return next;
}

int64_t ProfileSource::first_slice() { return before_ ? before_->first_slice() + before_->slice_count() : 0; }

uint32_t ProfileSource::slice_count() {
  return static_cast<uint32_t>(profile_.slices.size() + profile_.marks.size() + frame_slices().size());
}

uint32_t ProfileSource::track_count() const {
  return own_track_count() + static_cast<uint32_t>(profile_.timed() ? profile_.threads.size() : 0);
}

uint32_t ProfileSource::location_of_symbol(uint32_t symbol) const {
  return static_cast<uint32_t>(std::ranges::upper_bound(first_symbol_, symbol) - first_symbol_.begin()) - 1;
}

const std::vector<AggregateRow>& ProfileSource::aggregates() {
  if (!aggregates_) aggregates_ = make_aggregates();
  return *aggregates_;
}

std::vector<AggregateRow> ProfileSource::make_aggregates() const {
  const bool is_timed = !profile_.samples.empty() || !profile_.off_cpu.empty();
  if (!is_timed && are_distinct(profile_.aggregates)) {
    std::vector<AggregateRow> rows;
    rows.reserve(profile_.aggregates.size());
    const auto unknown = static_cast<uint32_t>(profile_.sites.size());
    for (const auto& a : profile_.aggregates)
      rows.push_back({a.metric.value, a.site.valid() ? a.site.value : unknown, a.labels, a.value});
    return rows;
  }
  AggregateSums sums(profile_);
  for (const auto& a : profile_.aggregates) sums.add(a.metric, a.site, a.labels, a.value);
  for (const auto& s : profile_.samples) sums.add(s.metric, s.site, s.labels, s.weight);
  const auto off_cpu_metric = analyze::find_metric(profile_, profile::kOffCpuMetric);
  for (const auto& o : profile_.off_cpu)
    if (off_cpu_metric.valid()) sums.add(off_cpu_metric, o.site, {}, profile::off_cpu_value(o));
  return sums.take();
}

const std::vector<FrameSliceRow>& ProfileSource::frame_slices() {
  if (!frame_slices_) frame_slices_ = make_frame_slices();
  return *frame_slices_;
}

std::vector<FrameSliceRow> ProfileSource::make_frame_slices() const {
  std::vector<FrameSliceRow> rows;
  if (!profile_.timed()) return rows;
  std::vector<uint32_t> open;  // the newest row at each depth of the current thread
  profile::ThreadId thread;
  timeline::for_each_slice(profile_, timeline::default_options(profile_), [&](const timeline::FrameSlice& slice) {
    if (slice.thread != thread) open.clear();
    thread = slice.thread;
    open.resize(slice.depth + 1, FrameSliceRow::kNoParent);
    open[slice.depth] = static_cast<uint32_t>(rows.size());
    rows.push_back({slice.start_ns, slice.end_ns, thread.value, slice.depth,
                    slice.depth == 0 ? FrameSliceRow::kNoParent : open[slice.depth - 1], slice.location, slice.line});
  });
  return rows;
}

const std::vector<std::optional<int64_t>>& ProfileSource::own_slice_parents() {
  if (!slice_parents_) slice_parents_ = slice_parents(profile_, 0);
  return *slice_parents_;
}

const std::vector<OffCpuRow>& ProfileSource::off_cpu() {
  if (off_cpu_) return *off_cpu_;
  off_cpu_.emplace();
  for (uint32_t i = 0; i < profile_.off_cpu.size(); ++i) {
    const auto& interval = profile_.off_cpu[i];
    const bool is_told = interval.woken_ns != 0;
    if (!is_told || interval.woken_ns > interval.start_ns || interval.duration_ns() == 0)
      off_cpu_->push_back({i, false});
    if (is_told && interval.woken_ns < interval.end_ns) off_cpu_->push_back({i, true});
  }
  return *off_cpu_;
}

const std::vector<StateRow>& ProfileSource::states() {
  if (states_) return *states_;
  states_.emplace();
  for (uint32_t i = 0; i < profile_.on_cpu.size(); ++i)
    states_->push_back({profile_.on_cpu[i].start_ns, profile_.on_cpu[i].end_ns, i, true});
  for (uint32_t i = 0; i < off_cpu().size(); ++i) {
    const OffCpuRow& row = off_cpu()[i];
    const auto& interval = profile_.off_cpu[row.interval];
    states_->push_back({row.is_runnable ? interval.runnable_ns() : interval.start_ns,
                        row.is_runnable ? interval.end_ns : interval.runnable_ns(), i, false});
  }
  std::ranges::stable_sort(*states_, {}, &StateRow::start_ns);
  return *states_;
}

const std::vector<ArgumentRow>& ProfileSource::arguments() {
  if (arguments_) return *arguments_;
  arguments_.emplace();
  for (uint32_t set = 0; set < profile_.label_sets.size(); ++set) {
    const auto [first, count] = profile_.label_sets[set];
    for (uint32_t row = first; row < first + count; ++row) {
      const profile::Label& label = profile_.labels[row];
      arguments_->push_back({set, row, label.is_number ? fmt::format("{}", label.number) : std::string()});
    }
  }
  return *arguments_;
}

const std::vector<FactRow>& ProfileSource::facts() {
  if (facts_) return *facts_;
  facts_.emplace();
  const profile::RunInfo& run = profile_.run;
  for (const RunFact& fact : all_run_facts()) {
    FactRow row{.name = fact.name};
    if (fact.text) row.text = run.*fact.text;
    if (fact.number) row.number = static_cast<int64_t>(run.*fact.number);
    if (fact.flag) row.number = run.*fact.flag;
    facts_->push_back(row);
  }
  facts_->push_back({.name = kCpusFact, .number = run.cpus});
  facts_->push_back({.name = kPeriodFact, .number = run.period});
  facts_->push_back({.name = kDefaultMetricFact, .text = profile_.text(run.default_metric)});
  for (const std::string& comment : run.comments)
    facts_->push_back({.name = kCommentFact, .type = "multi", .text = comment});
  return *facts_;
}

const std::vector<LossRow>& ProfileSource::losses() {
  if (losses_) return *losses_;
  losses_.emplace();
  for (const auto& [name, loss] : profile_.diagnostics.entries()) losses_->push_back({name, &loss});
  return *losses_;
}

void ProfileSet::add(std::shared_ptr<const Profile> profile, std::string_view name) {
  std::string scope(name);
  for (int n = 2; !scopes_.insert(scope).second; ++n) scope = fmt::format("{} ({})", name, n);
  ProfileSource* before = sources_.empty() ? nullptr : sources_.back().get();
  sources_.push_back(std::make_unique<ProfileSource>(std::move(profile), std::move(scope), before));
}

}  // namespace cprof::store
