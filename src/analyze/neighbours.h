// Who calls a function and whom it calls, with values: what --peek shows. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/call_tree.h"

namespace cprof::analyze {

struct Neighbour {
  uint32_t group = 0;
  int64_t value = 0;  // of the stacks that have this call; a stack with it twice counts once
};

struct Neighbourhood {
  uint32_t group = 0;
  int64_t self = 0, total = 0;  // recursion counts once per stack
  std::vector<Neighbour> callers, callees;  // largest first
  int64_t as_root = 0;                      // of the stacks where nothing calls it
};

// One for each of the groups, in their order.
std::vector<Neighbourhood> neighbours_of(const CallTree& tree, const std::vector<uint32_t>& groups, size_t group_count);

}  // namespace cprof::analyze
