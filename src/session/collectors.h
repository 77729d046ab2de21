// Chooses and makes the collector of a recording. The one place that knows every backend.
#pragma once

#include <memory>

#include "base/diagnostics.h"
#include "base/result.h"
#include "event/event.h"

namespace cprof::session {

struct RecordOptions;

// A collector with the little that a session needs beyond event::Collector.
class RunningCollector {
 public:
  virtual ~RunningCollector() = default;
  virtual event::Collector& get() = 0;
  virtual void note_truncated(uint64_t truncated, uint64_t total) = 0;
  virtual void hurry() = 0;  // read again after one sampling interval, whatever has come
  virtual int command_status() const = 0;      // as a shell gives it; -1: none, or still running
  virtual bool terminate_command() = 0;        // SIGTERM; false: there is none that runs
  virtual uint64_t samples_per_second() const = 0;  // asked for, of one busy CPU
  virtual uint64_t bytes_read() const = 0;
};

// Backend auto takes perf events: BPF is asked for by name until it is proven on more machines.
Result<std::unique_ptr<RunningCollector>> make_collector(const RecordOptions& options);

}  // namespace cprof::session
