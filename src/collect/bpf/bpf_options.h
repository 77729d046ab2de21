// What to record with BPF: what perf would be asked, and what only BPF can do.
#pragma once

#include <cstdint>

#include "collect/perf/perf_options.h"

namespace cprof::collect {

struct BpfOptions {
  PerfOptions perf;               // the target, events, rate; stack_mode kDwarf means the tables
  uint32_t max_depth = 1024;      // of user frames, at most this many
  bool off_cpu = false;           // where threads left the CPU, and who woke them
  bool count_only = false;        // samples are counted per stack: no times, little data
};

}  // namespace cprof::collect
