// The table of functions (or lines, or addresses): how much each does itself and with what it calls.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/groups.h"
#include "analyze/site_totals.h"

namespace cprof::analyze {

struct TopRow {
  uint32_t group = 0;
  int64_t self = 0;
  int64_t total = 0;  // recursion counts once per stack
};

// Largest self first, then largest total; rows of weight 0 are left out. Inlined functions count as functions.
std::vector<TopRow> top_functions(const profile::Profile& profile, const Groups& groups, const SiteTotals& totals);

}  // namespace cprof::analyze
