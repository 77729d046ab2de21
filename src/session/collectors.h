// Chooses and makes the collector of a recording. The one place that knows every backend.
#pragma once

#include <memory>
#include <string>
#include <utility>

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

  // Where the backend was ours to choose and is not bpf: why not, in one line.
  const std::string& why_not_bpf() const { return why_not_bpf_; }
  void set_why_not_bpf(std::string reason) { why_not_bpf_ = std::move(reason); }

 private:
  std::string why_not_bpf_;
};

// Backend auto takes bpf when it can do all that is asked for on this machine, which is found out by loading it.
Result<std::unique_ptr<RunningCollector>> make_collector(const RecordOptions& options);

}  // namespace cprof::session
