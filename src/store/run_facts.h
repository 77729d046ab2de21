// The facts of a run as rows of metadata: one list, both ways. Used by the writer and the reader. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "profile/profile.h"

namespace cprof::store {

// A fact is one member of RunInfo, of one of three types.
struct RunFact {
  std::string_view name;
  std::string profile::RunInfo::*text = nullptr;
  uint64_t profile::RunInfo::*number = nullptr;
  bool profile::RunInfo::*flag = nullptr;
};
std::span<const RunFact> all_run_facts();

// Those that are not that simple.
inline constexpr std::string_view kCommentFact = "comment", kCpusFact = "cpus", kPeriodFact = "period",
                                  kDefaultMetricFact = "default_metric";

}  // namespace cprof::store
