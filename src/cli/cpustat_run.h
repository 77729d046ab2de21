// One run of cpustat: reads the source once an interval, sums up, and hands each interval to whatever shows or writes it.
// Between intervals the screen has the thread. Used by the verb.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cpustat/intervals.h"
#include "cpustat/thread_source.h"

namespace cprof::cli {

struct CpustatOptions {
  uint64_t interval_ns = 1'000'000'000;
  uint64_t count = 0;          // intervals; 0: no limit
  uint64_t duration_ns = 0;    // 0: no limit
  bool ends_with_threads = false;  // when the last of the target's threads is gone
};

// Where intervals go. wait() may return early; false: the user has seen enough.
class CpustatScreen {
 public:
  virtual ~CpustatScreen() = default;
  virtual bool wait(int timeout_ms) = 0;
  virtual Result<void> show(const cpustat::Interval& interval) = 0;
  virtual uint64_t interval_ns() const = 0;  // the user may change it
};

class CpustatRun {
 public:
  CpustatRun(CpustatOptions options, std::unique_ptr<cpustat::ThreadSource> source)
      : options_(options), source_(std::move(source)) {}

  // Follows the target from now on.
  Result<void> start();
  // has_ended: whether a command that is the target is done.
  Result<void> go_on(CpustatScreen& screen, const std::function<bool()>& has_ended);

  const cpustat::Totals& totals() const { return totals_; }
  Diagnostics diagnostics() const { return source_->diagnostics(); }

 private:
  Result<bool> take_interval(CpustatScreen& screen);

  CpustatOptions options_;
  std::unique_ptr<cpustat::ThreadSource> source_;
  cpustat::Intervals intervals_;
  cpustat::Totals totals_;
  std::vector<cpustat::ThreadSums> sums_;
  uint64_t start_ns_ = 0, last_ns_ = 0, taken_ = 0;
};

}  // namespace cprof::cli
