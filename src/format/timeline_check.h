// Whether a profile can be laid out over time. Used by the writers of timelines.
#pragma once

#include "profile/profile.h"

namespace cprof::format {

// A recording that was over before its first sample is empty, not untimed.
inline bool is_timeline(const profile::Profile& profile) {
  const bool is_empty_recording = profile.run.start_ns != 0 && profile.aggregates.empty();
  return profile.timed() || !profile.slices.empty() || !profile.marks.empty() || !profile.counters.empty() || is_empty_recording;
}

}  // namespace cprof::format
