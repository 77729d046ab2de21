// A function's total is the weight below its outermost frames: a walk over the tree of call sites counts how often each
// function is open, and adds a site's inclusive weight when that number leaves 0. No stack is looked at twice.
#include "analyze/top.h"

#include <algorithm>

namespace cprof::analyze {
namespace {

using profile::CallSiteId;
using profile::LocationId;
using profile::Profile;

// Children of each call site as linked lists, for walks without recursion.
struct SiteTree {
  std::vector<uint32_t> first_child, next_sibling;
  std::vector<uint32_t> roots;

  explicit SiteTree(const Profile& profile)
      : first_child(profile.sites.size(), CallSiteId::kNone), next_sibling(profile.sites.size(), CallSiteId::kNone) {
    for (uint32_t i = static_cast<uint32_t>(profile.sites.size()); i-- > 0;) {
      const CallSiteId parent = profile.sites[i].parent;
      if (!parent.valid()) {
        roots.push_back(i);
        continue;
      }
      next_sibling[i] = first_child[parent.index()];
      first_child[parent.index()] = i;
    }
  }
};

template <typename Visit>
void for_each_group(const Profile& profile, const Groups& groups, uint32_t site, Visit&& visit) {
  const LocationId location = profile.sites[site].location;
  const uint16_t count = std::max<uint16_t>(1, profile.locations[location.index()].line_count);
  for (uint16_t line = 0; line < count; ++line) visit(groups.of(location, line));
}

void add_totals(const Profile& profile, const Groups& groups, const SiteTotals& totals, std::vector<TopRow>& rows) {
  const std::vector<int64_t> inclusive = inclusive_by_site(profile, totals);
  const SiteTree tree(profile);
  std::vector<uint32_t> open(groups.size()), path;
  auto enter = [&](uint32_t site) {
    path.push_back(site);
    for_each_group(profile, groups, site, [&](uint32_t group) {
      if (open[group]++ == 0) rows[group].total = add_clamped(rows[group].total, inclusive[site]);
    });
  };
  auto leave = [&] {
    for_each_group(profile, groups, path.back(), [&](uint32_t group) { --open[group]; });
    path.pop_back();
  };
  for (uint32_t root : tree.roots) {
    for (uint32_t next = root; next != CallSiteId::kNone;) {
      enter(next);
      next = tree.first_child[next];
      while (next == CallSiteId::kNone && path.size() > 1) {
        next = tree.next_sibling[path.back()];
        leave();
      }
    }
    while (!path.empty()) leave();
  }
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
  std::erase_if(rows, [](const TopRow& row) { return row.self == 0 && row.total == 0; });
  std::ranges::stable_sort(
      rows, [](const TopRow& a, const TopRow& b) { return a.self != b.self ? a.self > b.self : a.total > b.total; });
  return rows;
}

}  // namespace cprof::analyze
