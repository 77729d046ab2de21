// What shares are shares of. Used by every text view, so that they agree.
#pragma once

#include <cstdint>

#include "analyze/weights.h"

namespace cprof::analyze {

// The total; where values of both signs cancel out to 0, the sum of their sizes.
int64_t whole_of(const Weights& weights);

}  // namespace cprof::analyze
