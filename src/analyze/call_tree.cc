#include "analyze/call_tree.h"

#include <algorithm>
#include <numeric>

namespace cprof::analyze {
namespace {

using profile::CallSite;
using profile::Profile;

class Merger {
 public:
  Merger(const Profile& profile, const Groups& groups) : profile_(profile), groups_(groups) {
    tree_.nodes.push_back({});
  }

  uint32_t child(uint32_t parent, uint32_t group) {
    auto& nodes = tree_.nodes;
    return index_.find_or_add(parent, group, [&] {
      nodes.push_back({.parent = parent, .group = group, .depth = nodes[parent].depth + 1});
      return static_cast<uint32_t>(nodes.size() - 1);
    });
  }

  void add_self(uint32_t node, int64_t weight) { tree_.nodes[node].self = add_clamped(tree_.nodes[node].self, weight); }

  // The sites that carry weight, hung below `top`. Sites come after their parents, so one pass places them all.
  void add_sites(uint32_t top, const std::vector<int64_t>& weights) {
    const std::vector<bool> used = sites_in_use(weights);
    std::vector<uint32_t> node_of(profile_.sites.size());
    for (size_t i = 0; i < profile_.sites.size(); ++i) {
      if (!used[i]) continue;
      const CallSite& site = profile_.sites[i];
      uint32_t node = site.parent.valid() ? node_of[site.parent.index()] : top;
      const uint16_t count = std::max<uint16_t>(1, profile_.locations[site.location.index()].line_count);
      for (uint16_t line = count; line-- > 0;) node = child(node, groups_.of(site.location, line));
      node_of[i] = node;
      add_self(node, weights[i]);
    }
  }

  CallTree finish() {
    auto& nodes = tree_.nodes;
    for (size_t i = nodes.size(); i-- > 0;) {
      nodes[i].total = add_clamped(nodes[i].total, nodes[i].self);
      if (i > 0) nodes[nodes[i].parent].total = add_clamped(nodes[nodes[i].parent].total, nodes[i].total);
    }
    order_children();
    return std::move(tree_);
  }

 private:
  std::vector<bool> sites_in_use(const std::vector<int64_t>& weights) const {
    std::vector<bool> used(profile_.sites.size());
    for (size_t i = used.size(); i-- > 0;) {
      if (weights[i] != 0) used[i] = true;
      if (used[i] && profile_.sites[i].parent.valid()) used[profile_.sites[i].parent.index()] = true;
    }
    return used;
  }

  void order_children() {
    auto& nodes = tree_.nodes;
    auto& order = tree_.order;
    order.resize(nodes.size() - 1);
    std::iota(order.begin(), order.end(), 1u);
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
      return nodes[a].parent != nodes[b].parent ? nodes[a].parent < nodes[b].parent : nodes[a].total > nodes[b].total;
    });
    for (uint32_t i = 0; i < order.size(); ++i) {
      TreeNode& parent = nodes[nodes[order[i]].parent];
      if (parent.child_count++ == 0) parent.first_child = i;
    }
  }

  const Profile& profile_;
  const Groups& groups_;
  CallTree tree_;
  profile::PairIndex index_;
};

}  // namespace

CallTree call_tree(const Profile& profile, const Groups& groups, const SiteTotals& totals) {
  Merger merger(profile, groups);
  merger.add_sites(0, totals.whole);
  if (!totals.cut.empty()) merger.add_sites(merger.child(0, Groups::kTruncated), totals.cut);
  if (totals.unknown != 0) merger.add_self(merger.child(0, Groups::kUnknown), totals.unknown);
  return merger.finish();
}

}  // namespace cprof::analyze
