#include "analyze/shares.h"

namespace cprof::analyze {

int64_t whole_of(const Weights& weights) {
  if (weights.total != 0) return weights.total;
  int64_t whole = 0;
  for (const auto* part : {&weights.of_samples, &weights.of_aggregates, &weights.of_off_cpu, &weights.of_resumed})
    for (int64_t value : *part) whole = add_clamped(whole, value == INT64_MIN ? INT64_MAX : value < 0 ? -value : value);
  return whole;
}

}  // namespace cprof::analyze
