// A node's weight is the largest share that it has of any metric, itself and what is below it, by absolute values: so a
// parent is never lighter than its child, and taking the heaviest nodes never leaves one without its parent.
#include "page/layout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace cprof::page {
namespace {

class Layout {
 public:
  Layout(LineTree& tree, const PageValues& values) : tree_(tree), values_(values) {}

  TreeLayout run(size_t max_nodes) {
    weigh();
    std::vector<uint32_t> stands_for(tree_.nodes().size());
    std::iota(stands_for.begin(), stands_for.end(), 0u);
    if (tree_.nodes().size() > max_nodes) prune(max_nodes, stands_for);
    order(stands_for);
    result_.place.resize(stands_for.size());
    std::vector<uint32_t> place(tree_.nodes().size());
    for (uint32_t i = 0; i < result_.order.size(); ++i) place[result_.order[i]] = i;
    for (size_t i = 0; i < stands_for.size(); ++i) result_.place[i] = place[stands_for[i]];
    return std::move(result_);
  }

 private:
  void weigh() {
    std::vector<double> totals(values_.metrics.size());
    for (const ValueRow& row : values_.rows)
      for_each_metric(values_, row, [&](uint32_t metric, int64_t v) { totals[metric] += std::fabs(static_cast<double>(v)); });
    std::vector<double> sums;
    weights_.assign(tree_.nodes().size(), 0);
    for (uint32_t metric = 0; metric < totals.size(); ++metric) {
      if (totals[metric] == 0) continue;
      sums.assign(weights_.size(), 0);
      for (const ValueRow& row : values_.rows)
        for_each_metric(values_, row, [&](uint32_t m, int64_t v) {
          if (m == metric) sums[row.node] += std::fabs(static_cast<double>(v)) / totals[metric];
        });
      for (size_t i = sums.size(); i-- > 1;) sums[tree_.nodes()[i].parent] += sums[i];
      for (size_t i = 0; i < sums.size(); ++i) weights_[i] = std::max(weights_[i], sums[i]);
    }
  }

  void prune(size_t max_nodes, std::vector<uint32_t>& stands_for) {
    const size_t nodes = tree_.nodes().size();
    std::vector<uint32_t> heaviest(nodes);
    std::iota(heaviest.begin(), heaviest.end(), 0u);
    // Of equal weights the earlier node wins: parents come before their children.
    auto heavier = [&](uint32_t a, uint32_t b) { return weights_[a] != weights_[b] ? weights_[a] > weights_[b] : a < b; };
    std::ranges::nth_element(heaviest, heaviest.begin() + static_cast<ptrdiff_t>(max_nodes), heavier);
    std::vector<bool> kept(nodes);
    for (size_t i = 0; i < max_nodes; ++i) kept[heaviest[i]] = true;
    kept[LineTree::kRoot] = true;
    for (uint32_t i = 0; i < nodes; ++i) {
      if (kept[i]) continue;
      ++result_.pruned_nodes;
      const uint32_t parent = tree_.nodes()[i].parent;
      stands_for[i] = kept[parent] ? tree_.pruned_child(parent) : stands_for[parent];
      if (weights_.size() < tree_.nodes().size()) weights_.resize(tree_.nodes().size());
      if (kept[parent]) weights_[stands_for[i]] += weights_[i];
    }
  }

  void order(const std::vector<uint32_t>& stands_for) {
    const size_t nodes = tree_.nodes().size();
    std::vector<uint32_t> first(nodes + 1), children;
    auto is_shown = [&](uint32_t i) { return i >= stands_for.size() || stands_for[i] == i; };
    for (uint32_t i = 1; i < nodes; ++i)
      if (is_shown(i)) ++first[tree_.nodes()[i].parent + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    children.resize(first.back());
    std::vector<uint32_t> next(first.begin(), first.end() - 1);
    for (uint32_t i = 1; i < nodes; ++i)
      if (is_shown(i)) children[next[tree_.nodes()[i].parent]++] = i;
    std::vector<uint32_t> open{LineTree::kRoot};
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      result_.order.push_back(node);
      auto begin = children.begin() + first[node], end = children.begin() + first[node + 1];
      // The heaviest comes off the stack first.
      std::sort(begin, end, [&](uint32_t a, uint32_t b) { return weights_[a] != weights_[b] ? weights_[a] < weights_[b] : a > b; });
      open.insert(open.end(), begin, end);
    }
  }

  LineTree& tree_;
  const PageValues& values_;
  std::vector<double> weights_;
  TreeLayout result_;
};

}  // namespace

TreeLayout lay_out(LineTree& tree, const PageValues& values, size_t max_nodes) {
  return Layout(tree, values).run(max_nodes);
}

}  // namespace cprof::page
