#include "format/pftrace/trace_clocks.h"

#include <algorithm>
#include <iterator>

#include "format/pftrace/pftrace_fields.h"

namespace cprof::format {
namespace {

constexpr uint32_t kFirstSequenceClock = 64, kLastSequenceClock = 127;

struct Reading {
  uint32_t clock = 0;
  uint64_t time = 0, unit_ns = 1;
  bool is_incremental = false;
};

Reading read_clock(ProtoFields fields) {
  Reading reading;
  while (fields.next()) {
    switch (fields.tag()) {
      case pft::ClockSnapshot::kClockId: reading.clock = fields.get_uint32(); break;
      case pft::ClockSnapshot::kTimestamp: reading.time = fields.get_uint64(); break;
      case pft::ClockSnapshot::kIsIncremental: reading.is_incremental = fields.get_bool(); break;
      case pft::ClockSnapshot::kUnitNs: reading.unit_ns = std::max<uint64_t>(1, fields.get_uint64()); break;
      default: fields.skip();
    }
  }
  return reading;
}

}  // namespace

uint64_t TraceClocks::key_of(uint32_t sequence, uint32_t clock) {
  const bool is_of_sequence = clock >= kFirstSequenceClock && clock <= kLastSequenceClock;
  return (is_of_sequence ? uint64_t{sequence} << 32 : 0) | clock;
}

void TraceClocks::add_snapshot(uint32_t sequence, ProtoFields snapshot) {
  std::vector<Reading> readings;
  while (snapshot.next()) {
    if (snapshot.tag() == pft::ClockSnapshot::kClocks) readings.push_back(read_clock(snapshot.get_message()));
    else snapshot.skip();
  }
  const auto find = [&](uint32_t clock) { return std::ranges::find(readings, clock, &Reading::clock); };
  auto target = find(pft::ClockSnapshot::kMonotonic);
  if (target == readings.end()) target = find(pft::ClockSnapshot::kBoottime);
  if (target == readings.end()) return;
  for (const Reading& reading : readings) {
    Clock& clock = clocks_[key_of(sequence, reading.clock)];
    clock.unit_ns = reading.unit_ns;
    clock.is_incremental = reading.is_incremental;
    clock.last = reading.time;
    const Point point{reading.time * reading.unit_ns, target->time};
    if (clock.points.empty() || clock.points.back().time_ns < point.time_ns) clock.points.push_back(point);
    if (reading.clock != pft::ClockSnapshot::kRealtime || has_realtime_) continue;
    realtime_ = {reading.time, target->time};
    has_realtime_ = true;
  }
}

uint64_t TraceClocks::convert(uint32_t sequence, uint32_t id, uint64_t time) {
  const auto found = clocks_.find(key_of(sequence, id));
  if (found == clocks_.end()) {
    // Traces of one clock only need no snapshot: the trace's own clock is not unknown.
    unknown_times_ += id != pft::ClockSnapshot::kBoottime && id != 0;
    return time;
  }
  Clock& clock = found->second;
  if (clock.is_incremental) time = clock.last += time;
  const uint64_t time_ns = time * clock.unit_ns;
  auto after = std::ranges::upper_bound(clock.points, time_ns, {}, &Point::time_ns);
  const Point& nearest = after == clock.points.begin() ? *after : *std::prev(after);
  return time_ns - nearest.time_ns + nearest.target_ns;
}

uint64_t TraceClocks::realtime_at(uint64_t time_ns) const {
  return has_realtime_ ? realtime_.time_ns + (time_ns - realtime_.target_ns) : 0;
}

}  // namespace cprof::format
