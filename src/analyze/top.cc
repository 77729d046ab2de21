// A function's total is the weight below its outermost frames: a walk over the tree of call sites counts how often each
// function is open, and adds a site's inclusive weight when that number leaves 0. No stack is looked at twice.
#include "analyze/top.h"

#include <algorithm>

#include "analyze/site_walk.h"

namespace cprof::analyze {
namespace {

using profile::LocationId;
using profile::Profile;

template <typename Visit>
void for_each_group(const Profile& profile, const Groups& groups, uint32_t site, Visit&& visit) {
  const LocationId location = profile.sites[site].location;
  const uint16_t count = std::max<uint16_t>(1, profile.locations[location.index()].line_count);
  for (uint16_t line = 0; line < count; ++line) visit(groups.of(location, line));
}

void add_totals(const Profile& profile, const Groups& groups, const SiteTotals& totals, std::vector<TopRow>& rows) {
  const std::vector<int64_t> inclusive = inclusive_by_site(profile, totals);
  std::vector<uint32_t> open(groups.size());
  auto enter = [&](uint32_t site) {
    for_each_group(profile, groups, site, [&](uint32_t group) {
      if (open[group]++ == 0) rows[group].total = add_clamped(rows[group].total, inclusive[site]);
    });
  };
  walk_sites(profile, enter, [&](uint32_t site) {
    for_each_group(profile, groups, site, [&](uint32_t group) { --open[group]; });
  });
}

}  // namespace

std::vector<TopRow> top_functions(const Profile& profile, const Groups& groups, const SiteTotals& totals) {
  std::vector<TopRow> rows(groups.size());
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i].group = i;
  add_totals(profile, groups, totals, rows);
  for (size_t site = 0; site < profile.sites.size(); ++site) {
    int64_t& self = rows[groups.of(profile.sites[site].location, 0)].self;
    self = add_clamped(self, totals.self(site));
  }
  TopRow& unknown = rows[Groups::kUnknown];
  unknown.self = add_clamped(unknown.self, totals.unknown);
  unknown.total = add_clamped(unknown.total, totals.unknown);
  // Where nothing has a value (slices that all begin and end at once) the names are what there is to show.
  const auto is_nothing = [](const TopRow& row) { return row.self == 0 && row.total == 0; };
  if (std::ranges::all_of(rows, is_nothing)) std::erase_if(rows, [](const TopRow& row) { return row.group <= Groups::kTruncated; });
  else std::erase_if(rows, is_nothing);
  std::ranges::stable_sort(
      rows, [](const TopRow& a, const TopRow& b) { return a.self != b.self ? a.self > b.self : a.total > b.total; });
  return rows;
}

}  // namespace cprof::analyze
