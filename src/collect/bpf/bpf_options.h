// What to record with BPF: what perf would be asked, and what only BPF can do.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "collect/perf/perf_options.h"

namespace cprof::collect {

struct BpfOptions {
  PerfOptions perf;               // the target, events, rate; stack_mode kDwarf means the tables
  uint32_t max_depth = 4096;      // of user frames, at most this many
  bool off_cpu = false;           // where threads left the CPU, and who woke them
  bool count_only = false;        // samples are counted per stack: no times, little data

  // For the test that compares both ways: each sample is also taken by perf, with registers and stack, and this is given
  // the event, to map its ring before it is used.
  std::function<Result<void>(int perf_event, const perf_event_attr& attr)> perf_tap;
};

}  // namespace cprof::collect
