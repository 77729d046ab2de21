// Times of a Perfetto trace, whatever clock they are in, as CLOCK_MONOTONIC when the trace tells how that ran, else as
// CLOCK_BOOTTIME. Used by the pftrace reader; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "format/pftrace/proto_fields.h"

namespace cprof::format {

class TraceClocks {
 public:
  void add_snapshot(uint32_t sequence, ProtoFields snapshot);

  // The time of a packet of that sequence, in that clock. Clocks that no snapshot told so far are counted and taken as they are.
  uint64_t convert(uint32_t sequence, uint32_t clock, uint64_t time);
  uint64_t unknown_times() const { return unknown_times_; }
  // CLOCK_REALTIME at a time that convert() gave; 0 when unknown.
  uint64_t realtime_at(uint64_t time_ns) const;

 private:
  struct Point {
    uint64_t time_ns = 0, target_ns = 0;
  };
  struct Clock {
    std::vector<Point> points;
    uint64_t unit_ns = 1, last = 0;  // of incremental clocks
    bool is_incremental = false;
  };
  static uint64_t key_of(uint32_t sequence, uint32_t clock);

  std::map<uint64_t, Clock> clocks_;
  uint64_t unknown_times_ = 0;
  Point realtime_;  // time_ns: of CLOCK_REALTIME
  bool has_realtime_ = false;
};

}  // namespace cprof::format
