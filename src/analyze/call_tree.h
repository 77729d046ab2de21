// The merged call tree: equal paths of functions (or lines, or addresses) are one node. Plain rows, any depth, nothing
// here or in its users needs recursion.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/groups.h"
#include "analyze/site_totals.h"

namespace cprof::analyze {

struct TreeNode {
  uint32_t parent = 0;
  uint32_t group = 0;
  uint32_t depth = 0;        // 0: the root, which stands for everything
  uint32_t first_child = 0;  // index into order
  uint32_t child_count = 0;
  int64_t self = 0, total = 0;
};

struct CallTree {
  std::vector<TreeNode> nodes;  // nodes[0] is the root; a parent comes before its children
  std::vector<uint32_t> order;  // children of each node side by side, heaviest first

  std::span<const uint32_t> children(uint32_t node) const {
    return std::span(order).subspan(nodes[node].first_child, nodes[node].child_count);
  }
};

// Samples without a stack are [unknown] below the root; stacks that were cut stand below [truncated].
CallTree call_tree(const profile::Profile& profile, const Groups& groups, const SiteTotals& totals);

}  // namespace cprof::analyze
