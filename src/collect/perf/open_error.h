// Why the kernel refused, in one line that names the call, the event, the task and CPU, and what mends it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "collect/perf/perf_options.h"

namespace cprof::collect {

struct OpenAttempt {
  std::string event;
  int32_t pid = -1;
  int cpu = -1;
};

// kernel.perf_event_paranoid; 2, the kernel's default, when it cannot be read.
int paranoid_level(const PerfOptions& options);

Error open_error(const OpenAttempt& attempt, int error_number, const PerfOptions& options);
// All ring sizes were refused: the limits of locked memory, and what would be needed for `rings` rings.
Error ring_error(int error_number, size_t rings, size_t pages, const PerfOptions& options);

}  // namespace cprof::collect
