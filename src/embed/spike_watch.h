// Latency spikes of a session that keeps its last seconds (keep=): scopes that lasted longer than the limit of their
// name. They are seen when the collector takes them out of a thread's ring, so the thread itself does nothing but
// record the scope. The collector thread only; it writes the report, this says when.
#pragma once

#include <cprof/cprof.h>

#include <cstdint>
#include <optional>
#include <string>

#include "embed/name_table.h"
#include "embed/options.h"
#include "embed/scope_limits.h"
#include "embed/tick_clock.h"

namespace cprof::embed {

struct Spike {
  uint32_t name = 0, thread = 0;  // thread: its row in the recording
  uint64_t lasted_ns = 0, limit_ns = 0;
};

class SpikeWatch {
 public:
  static constexpr uint64_t kShortestGapNs = 1'000'000'000;

  // of_program: limits that were told by calls, now or later.
  SpikeWatch(const ScopeLimits& of_program, const TickClock& clock, uint64_t keep_ns)
      : of_program_(of_program), clock_(clock), gap_ns_(keep_ns < kShortestGapNs ? kShortestGapNs : keep_ns) {}
  Result<void> add(const Options& options, NameTable& names);

  bool has_limits() const { return !of_session_.empty() || !of_program_.empty(); }
  void see(const cprof_record& record, uint32_t thread);
  // The longest since the last call, if it is to be reported: within a gap after a report (the kept seconds, at least
  // one) none is.
  std::optional<Spike> take(uint64_t now_ns);
  uint64_t spikes() const { return spikes_; }

 private:
  ScopeLimits of_session_;
  const ScopeLimits& of_program_;
  const TickClock& clock_;
  const uint64_t gap_ns_;
  std::optional<Spike> pending_;
  std::optional<uint64_t> reported_ns_;
  uint64_t spikes_ = 0;
};

}  // namespace cprof::embed
