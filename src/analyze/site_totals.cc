#include "analyze/site_totals.h"

#include "analyze/frames.h"

namespace cprof::analyze {
namespace {

void add(int64_t& sum, int64_t value) { sum = add_clamped(sum, value); }

}  // namespace

SiteTotals sum_by_site(const profile::Profile& profile, const Weights& weights) {
  SiteTotals totals{.whole = std::vector<int64_t>(profile.sites.size()), .cut = {}, .total = weights.total};
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const profile::Sample& sample = profile.samples[i];
    if (!sample.site.valid()) {
      add(totals.unknown, weights.of_samples[i]);
    } else if (is_cut(sample.end)) {
      totals.cut.resize(profile.sites.size());
      add(totals.cut[sample.site.index()], weights.of_samples[i]);
    } else {
      add(totals.whole[sample.site.index()], weights.of_samples[i]);
    }
  }
  for (size_t i = 0; i < profile.aggregates.size(); ++i) {
    const profile::CallSiteId site = profile.aggregates[i].site;
    add(site.valid() ? totals.whole[site.index()] : totals.unknown, weights.of_aggregates[i]);
  }
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
