// The slices that a program or an import gave, brought into lanes in which they nest, and what they say as stacks. Used by
// the readers of formats that hold slices (nest_slices, add_slice_stacks) and by the writers of such formats
// (slice_lanes). Nothing here looks at samples; for_each_slice in timeline.h makes slices of those.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/builder.h"
#include "profile/profile.h"

namespace cprof::timeline {

// The metric that add_slice_stacks() gives to a profile.
inline constexpr std::string_view kSliceMetric = "wall";

struct LaneSlice {
  static constexpr uint32_t kNone = 0xffffffff;
  uint32_t slice = 0;       // row of profile.slices
  uint32_t lane = 0;        // 0: of the thread or track itself; what overlaps there without nesting has a further one
  uint32_t depth = 0;       // among the slices of its lane
  uint32_t parent = kNone;  // where in the result; it comes before its children
};

// Every slice once. Owner by owner (threads, then tracks), there by start, longer ones first; equal ones keep their order,
// the later one inside the earlier one.
std::vector<LaneSlice> slice_lanes(const profile::Profile& profile);

// Puts the slices in that order and sets their depths. Those of further lanes move to a track of their own beside the first
// one. How many moved. beside: a value a slice, which moves along; empty: none.
uint64_t nest_slices(profile::Profile& profile);
uint64_t nest_slices(profile::Profile& profile, std::vector<profile::CallSiteId>& beside);

// Stacks for the views and formats that know no slices: every slice's self time (its duration without those of its
// children) as an aggregate of the metric "wall", on its thread; slices of a process's track count on its first thread (its
// main thread, made, when it has none). Stacks end at a depth of 1,024: deeper slices count there.
// callers: by row of the slices, where each was called from; invalid, or none at all: from the slice around it.
// For profiles that have neither samples nor values; others stay as they are, since their stacks already say it. Slices
// that all last 0 ns are said in the diagnostics.
void add_slice_stacks(profile::ProfileBuilder& builder, std::span<const profile::CallSiteId> callers = {});

}  // namespace cprof::timeline
