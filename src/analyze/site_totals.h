// Weights summed per call site: the step that every aggregate view begins with. After it the cost of a view depends on
// the number of distinct stacks, not on the number of samples.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/weights.h"
#include "profile/profile.h"

namespace cprof::analyze {

struct SiteTotals {
  std::vector<int64_t> whole;  // by site: weight of stacks that end there
  std::vector<int64_t> cut;    // the same for stacks that lost their root side ([truncated]); empty when none did
  int64_t unknown = 0;         // of samples without a stack
  int64_t total = 0;

  int64_t self(size_t site) const { return add_clamped(whole[site], cut.empty() ? 0 : cut[site]); }
};

SiteTotals sum_by_site(const profile::Profile& profile, const Weights& weights);

// By site: its own weight and that of everything below it.
std::vector<int64_t> inclusive_by_site(const profile::Profile& profile, const SiteTotals& totals);

}  // namespace cprof::analyze
