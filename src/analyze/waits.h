// What threads waited for: sums by class, and the places in the program that waited longest. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace cprof::analyze {

struct WaitTotals {
  struct OfClass {
    uint64_t ns = 0;
    uint64_t count = 0;  // waits, or for sched the times that a thread was runnable
  };
  std::array<OfClass, static_cast<size_t>(profile::WaitClass::kCount)> by_class{};
  uint64_t ns = 0;     // of all
  uint64_t waits = 0;  // intervals
};

// Exact times, whatever stacks were taken. The part of a wait after its waking belongs to sched.
WaitTotals wait_totals(const profile::Profile& profile);

struct TopWait {
  std::string where;  // the innermost user functions, "f < its caller < ..."
  profile::WaitClass wait_class = profile::WaitClass::kOther;
  int64_t ns = 0;
  uint64_t count = 0;
};

// Longest first, at most `most`.
std::vector<TopWait> top_waits(const profile::Profile& profile, size_t most);

}  // namespace cprof::analyze
