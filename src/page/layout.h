// Gives the tree's nodes their order in the payload: parents first, heavy children first, and, when they are too many,
// the lightest taken together. Used by the payload encoder; no recursion.
#pragma once

#include <cstdint>
#include <vector>

#include "page/line_tree.h"
#include "page/values.h"

namespace cprof::page {

struct TreeLayout {
  std::vector<uint32_t> order;      // nodes of the tree, pre-order; [0] is the root
  std::vector<uint32_t> place;      // by node: where it, or the pruned child that holds it, stands in order
  uint64_t pruned_nodes = 0;
};

// At most max_nodes stay, those with the largest shares of any metric; more only where "(pruned)" nodes are added.
TreeLayout lay_out(LineTree& tree, const PageValues& values, size_t max_nodes);

}  // namespace cprof::page
