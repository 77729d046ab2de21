// What each thread weighs, and how long it was on a CPU where switch records tell.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/weights.h"
#include "profile/profile.h"

namespace cprof::analyze {

struct ThreadRow {
  profile::ThreadId thread{};  // invalid: untimed values that name no thread
  uint64_t samples = 0;
  int64_t weight = 0;
  uint64_t on_cpu_ns = 0;              // 0 without switch records
  uint64_t first_ns = 0, last_ns = 0;  // of its samples
};

// Heaviest first, threads without any sample, value or time on a CPU left out.
std::vector<ThreadRow> thread_table(const profile::Profile& profile, const Weights& weights);

}  // namespace cprof::analyze
