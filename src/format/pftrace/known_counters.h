// Perfetto's numbers of perf's counters (protos/perfetto/common/perf_events.proto, PerfEvents.Counter). Used by the pftrace
// reader and writer.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cprof::format {

struct KnownCounter {
  std::string_view name;
  uint32_t number;
  bool is_time;  // counts nanoseconds
};
inline constexpr std::array<KnownCounter, 19> kKnownCounters = {{{"cpu-clock", 1, true},
                                                                 {"page-faults", 2, false},
                                                                 {"task-clock", 3, true},
                                                                 {"context-switches", 4, false},
                                                                 {"cpu-migrations", 5, false},
                                                                 {"minor-faults", 6, false},
                                                                 {"major-faults", 7, false},
                                                                 {"alignment-faults", 8, false},
                                                                 {"emulation-faults", 9, false},
                                                                 {"cycles", 10, false},
                                                                 {"instructions", 11, false},
                                                                 {"cache-references", 12, false},
                                                                 {"cache-misses", 13, false},
                                                                 {"branches", 14, false},
                                                                 {"branch-misses", 15, false},
                                                                 {"bus-cycles", 16, false},
                                                                 {"stalled-cycles-frontend", 17, false},
                                                                 {"stalled-cycles-backend", 18, false},
                                                                 {"ref-cycles", 19, false}}};

}  // namespace cprof::format
