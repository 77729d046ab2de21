// Noise: samples are counts of independent hits, so a count n comes out within sqrt(n) of its mean two times in three. The
// difference of two counts n1 * s and n2 has the deviation sqrt(n1 * s * s + n2); up to two of those it is called noise,
// and so is, whatever the counts, a difference below a thousandth of the total. Where values are not counts (bytes,
// nanoseconds), a count's deviation stands for as many values as a sample of that side is worth on average.
#include "analyze/diff.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "analyze/coarsen.h"
#include "analyze/site_totals.h"
#include "analyze/top.h"
#include "profile/transfer.h"

namespace cprof::analyze {
namespace {

using namespace profile;

constexpr double kDeviations = 2;
constexpr double kSmallestShare = 0.001;

bool knows_modules(const Profile& profile) {
  return std::ranges::any_of(profile.locations, [&](const Location& location) {
    return location.mapping.valid() && !profile.text(profile.mappings[location.mapping.index()].path).empty();
  });
}

// Modules by base name: where a program was installed does not matter.
class Joiner {
 public:
  Joiner(const DiffSide& before, const DiffSide& after, Granularity granularity)
      : granularity_(granularity), modules_(knows_modules(*before.profile) && knows_modules(*after.profile) ? Modules::kBaseNames : Modules::kNone) {
    joined_.before = into_.add_metric("before", before.values.unit);
    joined_.after = into_.add_metric("after", after.values.unit);
    if (knows_counts(before) && knows_counts(after)) {
      joined_.before_count = into_.add_metric("before samples", "count");
      joined_.after_count = into_.add_metric("after samples", "count");
    }
    add(before, joined_.before, joined_.before_count);
    add(after, joined_.after, joined_.after_count);
  }

  Joined take() {
    into_.profile().run.default_metric = into_.intern("after");
    joined_.profile = into_.take();
    return std::move(joined_);
  }

 private:
  static bool knows_counts(const DiffSide& side) { return !side.counts.of_samples.empty() || !side.counts.of_aggregates.empty(); }

  void add(const DiffSide& side, MetricId values, MetricId counts) {
    CoarseFrames frames(*side.profile, granularity_, into_, modules_);
    add_sums(*side.profile, sum_by_site(*side.profile, side.values), values, frames);
    if (counts.valid()) add_sums(*side.profile, sum_by_site(*side.profile, side.counts), counts, frames);
  }

  void add_sums(const Profile& from, const SiteTotals& totals, MetricId metric, CoarseFrames& frames) {
    if (totals.unknown != 0) into_.add_aggregate({.metric = metric, .value = totals.unknown});
    place(from, totals.whole, CallSiteId(), metric, frames);
    if (totals.cut.empty()) return;
    place(from, totals.cut, into_.site(CallSiteId(), frames.truncated()), metric, frames);
  }

  void place(const Profile& from, const std::vector<int64_t>& values, CallSiteId root, MetricId metric, CoarseFrames& frames) {
    std::vector<bool> needed(from.sites.size());
    for (size_t i = needed.size(); i-- > 0;) {
      if (values[i] != 0) needed[i] = true;
      if (needed[i] && from.sites[i].parent.valid()) needed[from.sites[i].parent.index()] = true;
    }
    std::vector<CallSiteId> now(from.sites.size());
    for (size_t i = 0; i < from.sites.size(); ++i) {
      if (!needed[i]) continue;
      const CallSite& site = from.sites[i];
      now[i] = into_.site(site.parent.valid() ? now[site.parent.index()] : root, frames.of(site.location));
      if (values[i] != 0) into_.add_aggregate({.site = now[i], .metric = metric, .value = values[i]});
    }
  }

  Granularity granularity_;
  Modules modules_;
  ProfileBuilder into_;
  Joined joined_;
};

// Values of one metric by group.
std::vector<int64_t> values_of(const Joined& joined, const Groups& groups, MetricId metric, bool by_total) {
  std::vector<int64_t> values(groups.size());
  if (!metric.valid()) return values;
  const Weights weights =
      sample_weights(joined.profile, {.kind = WeightSelection::Kind::kMetric, .metric = metric});
  for (const TopRow& row : top_functions(joined.profile, groups, sum_by_site(joined.profile, weights)))
    values[row.group] = by_total ? row.total : row.self;
  return values;
}

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

// What one sample is worth.
double worth(const DiffSide& side) {
  return ratio(std::abs(static_cast<double>(side.values.total)), static_cast<double>(side.counts.total));
}

double seconds_of(const Profile& profile) {
  const RunInfo& run = profile.run;
  return run.end_ns > run.start_ns ? static_cast<double>(run.end_ns - run.start_ns) / 1e9 : 0;
}

// Nanoseconds between two samples; 0 unknown.
double interval_of(const Profile& profile) {
  if (profile.run.sampling_interval_ns != 0) return static_cast<double>(profile.run.sampling_interval_ns);
  if (profile.run.period > 0 && profile.run.period_unit == "nanoseconds") return static_cast<double>(profile.run.period);
  const MetricId metric = default_metric(profile);
  const bool is_time = metric.valid() && profile.metrics[metric.index()].is_time;
  return is_time ? static_cast<double>(profile.metrics[metric.index()].period) : 0;
}

Change change_of(const DiffRow& row) {
  if (std::abs(row.delta()) <= row.noise) return Change::kWithinNoise;
  if (row.before == 0) return Change::kNew;
  if (row.after == 0) return Change::kGone;
  return row.delta() > 0 ? Change::kMore : Change::kLess;
}

int64_t negated(int64_t value, double scale) {
  const double wanted = -static_cast<double>(value) * scale;
  if (std::abs(wanted) >= 9.2e18) return wanted < 0 ? INT64_MIN : INT64_MAX;
  return scale == 1 ? -value : std::llround(wanted);
}

constexpr std::array<std::string_view, 5> kChanges = {"more", "less", "new", "gone", "noise"};

}  // namespace

std::string_view name_of(Change change) { return kChanges[static_cast<size_t>(change)]; }

Joined joined(const DiffSide& before, const DiffSide& after, Granularity granularity) {
  return Joiner(before, after, granularity).take();
}

double rate_scale(const DiffSide& before, const DiffSide& after) {
  if (before.values.unit != "count" || after.values.unit != "count") return 1;
  const double interval_before = interval_of(*before.profile), interval_after = interval_of(*after.profile);
  return interval_before > 0 && interval_after > 0 ? interval_before / interval_after : 1;
}

double scale_of(const DiffSide& before, const DiffSide& after, Normalize normalize) {
  if (normalize == Normalize::kNone) return 1;
  if (normalize == Normalize::kTotal) {
    const double scale = ratio(static_cast<double>(after.values.total), static_cast<double>(before.values.total));
    return scale > 0 ? scale : 1;
  }
  const double seconds_before = seconds_of(*before.profile), seconds_after = seconds_of(*after.profile);
  const bool is_known = seconds_before > 0 && seconds_after > 0;
  return (is_known ? seconds_after / seconds_before : 1) * rate_scale(before, after);
}

Weights sample_counts(const Profile& profile, MetricId metric, const Weights& values) {
  if (profile.timed()) return sample_weights(profile, {.kind = WeightSelection::Kind::kSamples, .metric = metric});
  if (values.unit == "count") return values;
  const MetricId samples = find_metric(profile, "samples");
  if (!samples.valid()) return {};
  return sample_weights(profile, {.kind = WeightSelection::Kind::kMetric, .metric = samples});
}

Diff diff(const Joined& joined, const DiffSide& before, const DiffSide& after, const DiffOptions& options) {
  const Groups groups(joined.profile, Granularity::kFunctions);
  Diff result{.rows = {},
              .total_before = before.values.total,
              .total_after = after.values.total,
              .scale = scale_of(before, after, options.normalize),
              .knows_counts = joined.before_count.valid()};
  const auto befores = values_of(joined, groups, joined.before, options.by_total);
  const auto afters = values_of(joined, groups, joined.after, options.by_total);
  const auto before_counts = values_of(joined, groups, joined.before_count, options.by_total);
  const auto after_counts = values_of(joined, groups, joined.after_count, options.by_total);
  const double scaled_worth = worth(before) * result.scale, after_worth = worth(after);
  const double largest = std::max(std::abs(static_cast<double>(result.total_before)) * result.scale,
                                  std::abs(static_cast<double>(result.total_after)));
  for (uint32_t group = 0; group < groups.size(); ++group) {
    if (befores[group] == 0 && afters[group] == 0) continue;
    const GroupName name = groups.name(group);
    DiffRow row{.name = name.text, .module = std::string(name.module), .before = befores[group], .after = afters[group]};
    row.scaled_before = static_cast<double>(row.before) * result.scale;
    const double variance = std::abs(static_cast<double>(before_counts[group])) * scaled_worth * scaled_worth +
                            std::abs(static_cast<double>(after_counts[group])) * after_worth * after_worth;
    row.noise = std::max(kDeviations * std::sqrt(variance), kSmallestShare * largest);
    row.change = change_of(row);
    result.rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(result.rows, [](const DiffRow& a, const DiffRow& b) {
    const bool a_noise = a.change == Change::kWithinNoise, b_noise = b.change == Change::kWithinNoise;
    if (a_noise != b_noise) return b_noise;
    return std::abs(a.delta()) > std::abs(b.delta());
  });
  return result;
}

Profile difference(const Joined& joined, double scale, std::string_view metric, std::string_view unit) {
  const Profile& from = joined.profile;
  std::unordered_map<uint32_t, int64_t> sums;  // by site
  for (const Aggregate& row : from.aggregates) {
    int64_t value = 0;
    if (row.metric == joined.after) value = row.value;
    if (row.metric == joined.before) value = negated(row.value, scale);
    int64_t& sum = sums[row.site.value];
    sum = add_clamped(sum, value);
  }
  ProfileBuilder into;
  SharedPlaces places;
  Transfer transfer(from, into, places);
  const MetricId id = into.add_metric(metric, unit);
  into.profile().run.default_metric = into.profile().metrics[0].name;
  for (const Aggregate& row : from.aggregates) {
    const auto sum = sums.find(row.site.value);
    if (sum == sums.end() || sum->second == 0) continue;
    into.add_aggregate({.site = transfer.site(row.site), .metric = id, .value = sum->second});
    sums.erase(sum);
  }
  return into.take();
}

}  // namespace cprof::analyze
