#include "analyze/site_totals.h"

#include "analyze/frames.h"

namespace cprof::analyze {
namespace {

void add(int64_t& sum, int64_t value) { sum = add_clamped(sum, value); }

void add_to_site(SiteTotals& totals, profile::CallSiteId site, profile::StackEnd end, int64_t value) {
  if (!site.valid()) return add(totals.unknown, value);
  if (!is_cut(end)) return add(totals.whole[site.index()], value);
  totals.cut.resize(totals.whole.size());
  add(totals.cut[site.index()], value);
}

void add_off_cpu(const profile::Profile& profile, const Weights& weights, SiteTotals& totals) {
  for (size_t i = 0; i < weights.of_off_cpu.size(); ++i) {
    const profile::OffCpuInterval& interval = profile.off_cpu[i];
    add_to_site(totals, interval.site, interval.end, weights.of_off_cpu[i]);
    if (weights.of_resumed.empty() || weights.of_resumed[i] == 0) continue;
    add_to_site(totals, profile::user_part(profile, interval.site), interval.end, weights.of_resumed[i]);
  }
}

}  // namespace

SiteTotals sum_by_site(const profile::Profile& profile, const Weights& weights) {
  SiteTotals totals{.whole = std::vector<int64_t>(profile.sites.size()), .cut = {}, .total = weights.total};
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const profile::Sample& sample = profile.samples[i];
    add_to_site(totals, sample.site, sample.end, weights.of_samples[i]);
  }
  for (size_t i = 0; i < profile.aggregates.size(); ++i) {
    const profile::Aggregate& row = profile.aggregates[i];
    add_to_site(totals, row.site, row.end, weights.of_aggregates[i]);
  }
  add_off_cpu(profile, weights, totals);
  return totals;
}

std::vector<int64_t> inclusive_by_site(const profile::Profile& profile, const SiteTotals& totals) {
  std::vector<int64_t> inclusive(profile.sites.size());
  for (size_t i = profile.sites.size(); i-- > 0;) {
    add(inclusive[i], totals.self(i));
    if (profile.sites[i].parent.valid()) add(inclusive[profile.sites[i].parent.index()], inclusive[i]);
  }
  return inclusive;
}

}  // namespace cprof::analyze
