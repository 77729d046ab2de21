// A walk over the tree without recursion, which knows how often each function and each call is open above the node it is
// at: a call adds a node's total when it is open for the first time.
#include "analyze/neighbours.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "analyze/weights.h"

namespace cprof::analyze {
namespace {

using Edge = std::pair<uint32_t, uint32_t>;  // caller, callee

class Walk {
 public:
  Walk(const CallTree& tree, const std::vector<uint32_t>& groups, size_t group_count)
      : tree_(tree), is_wanted_(group_count), open_(group_count), found_(groups.size()), row_of_(group_count) {
    for (size_t i = 0; i < groups.size(); ++i) {
      found_[i].group = groups[i];
      is_wanted_[groups[i]] = true;
      row_of_[groups[i]] = static_cast<uint32_t>(i);
    }
  }

  std::vector<Neighbourhood> run() {
    std::vector<std::pair<uint32_t, bool>> todo;  // node, whether it is left
    push_children(0, todo);
    while (!todo.empty()) {
      const auto [node, is_left] = todo.back();
      todo.pop_back();
      step(node, is_left ? -1 : 1);
      if (is_left) continue;
      todo.emplace_back(node, true);
      push_children(node, todo);
    }
    for (const auto& [edge, value] : values_) add_neighbours(edge, value);
    auto heavier = [](const Neighbour& a, const Neighbour& b) { return a.value > b.value; };
    for (Neighbourhood& row : found_) {
      std::ranges::stable_sort(row.callers, heavier);
      std::ranges::stable_sort(row.callees, heavier);
    }
    return std::move(found_);
  }

 private:
  void push_children(uint32_t node, std::vector<std::pair<uint32_t, bool>>& todo) const {
    for (uint32_t child : tree_.children(node)) todo.emplace_back(child, false);
  }

  static void add(int64_t& sum, int64_t value) { sum = add_clamped(sum, value); }

  // Entering (1) or leaving (-1) a node.
  void step(uint32_t at, int32_t direction) {
    const TreeNode& node = tree_.nodes[at];
    const bool is_root = node.parent == 0;
    const uint32_t caller = tree_.nodes[node.parent].group;
    if (is_wanted_[node.group]) {
      Neighbourhood& row = found_[row_of_[node.group]];
      if (direction > 0 && open_[node.group] == 0) add(row.total, node.total);
      if (direction > 0) add(row.self, node.self);
      if (direction > 0 && is_root) add(row.as_root, node.total);
      open_[node.group] += direction;
    }
    if (is_root || (!is_wanted_[node.group] && !is_wanted_[caller])) return;
    int32_t& times = open_edges_[uint64_t{caller} << 32 | node.group];
    if (direction > 0 && times == 0) add(values_[{caller, node.group}], node.total);
    times += direction;
  }

  void add_neighbours(const Edge& edge, int64_t value) {
    if (is_wanted_[edge.second]) found_[row_of_[edge.second]].callers.push_back({edge.first, value});
    if (is_wanted_[edge.first]) found_[row_of_[edge.first]].callees.push_back({edge.second, value});
  }

  const CallTree& tree_;
  std::vector<bool> is_wanted_;
  std::vector<int32_t> open_;  // by group
  std::unordered_map<uint64_t, int32_t> open_edges_;
  std::map<Edge, int64_t> values_;
  std::vector<Neighbourhood> found_;
  std::vector<uint32_t> row_of_;  // by group
};

}  // namespace

std::vector<Neighbourhood> neighbours_of(const CallTree& tree, const std::vector<uint32_t>& groups, size_t group_count) {
  return Walk(tree, groups, group_count).run();
}

}  // namespace cprof::analyze
