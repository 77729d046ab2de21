// Which functions of a call graph can call themselves, at once or by others, and which of them form one circle. Used by
// graph_stacks.cc; pure.
#pragma once

#include <cstdint>
#include <vector>

#include "format/callgrind/call_graph.h"

namespace cprof::format {

struct Recursion {
  std::vector<uint32_t> circle;    // by function: a number; a function that is not recursive has one of its own
  std::vector<bool> is_recursive;  // by function
  uint32_t circle_count = 0;
};

Recursion find_recursion(const CallGraph& graph);

}  // namespace cprof::format
