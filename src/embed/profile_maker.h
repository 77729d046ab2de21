// A Recording as the one profile model, for the writers. Pure; the collector thread.
#pragma once

#include <string>

#include "embed/module_tracker.h"
#include "embed/name_table.h"
#include "embed/recording.h"
#include "embed/tick_clock.h"
#include "profile/profile.h"

namespace cprof::embed {

// What the report says of the profiler itself.
struct OwnCost {
  uint64_t handler_p50_ns = 0, handler_p99_ns = 0, handler_total_ns = 0;
  uint64_t collector_cpu_ns = 0, ring_bytes = 0;
  uint64_t table_builds = 0, table_build_ns = 0;
};

struct SessionFacts {
  std::string program, event;             // "app", "perf task-clock"
  uint64_t start_ns = 0, end_ns = 0, start_realtime_ns = 0;
  uint64_t since_ns = 0;                  // what ended before is left out
  std::string cause;                      // why this was written, when nobody asked
  uint32_t frequency_hz = 0;
  double delivered_hz = 0;
  bool is_wall = false;
  OwnCost cost;
  Diagnostics losses;
};

profile::Profile make_profile(const Recording& recording, const ModuleTracker& modules, const NameTable& names,
                              const TickClock& clock, const SessionFacts& facts);

}  // namespace cprof::embed
