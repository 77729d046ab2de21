// One session from start to files. start() prepares in the caller's thread (unwind tables, events), then a collector thread at
// nice +1 empties the rings, follows threads and libraries, and writes. Control calls come from any thread, one at a time.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include <cprof/cprof.h>

#include "base/result.h"
#include "embed/module_tracker.h"
#include "embed/name_table.h"
#include "embed/options.h"
#include "embed/outputs.h"
#include "embed/profile_maker.h"
#include "embed/recording.h"
#include "embed/scope_limits.h"
#include "embed/spike_watch.h"
#include "embed/thread_registry.h"
#include "embed/tick_clock.h"

namespace cprof::embed {

// What outlives sessions.
struct Surroundings {
  ThreadRegistry& threads;
  NameTable& names;
  ModuleTracker& modules;
  const ScopeLimits& limits;
  OutputName output;      // number: of this session
};

class Session {
 public:
  Session(Options options, Surroundings surroundings);
  // The collector must have ended: stop(), or a fork that left it behind.
  ~Session();

  Result<void> start();
  // Ends sampling, takes what is left, writes the outputs.
  Result<void> stop();
  // path empty: the session's outputs.
  Result<void> dump(const std::string& path);
  // name: its extension chooses the format of what fd gets.
  Result<void> dump_onto(int fd, const std::string& name);
  void fill(cprof_status& status);
  // What was delivered, in one line for people.
  std::string summary();

  // Around fork(): the collector does nothing meanwhile.
  void lock_for_fork() { work_.lock(); }
  void unlock_after_fork() { work_.unlock(); }
  const Options& options() const { return options_; }
  // How many numbers its files have used.
  uint64_t numbers_used() const { return options_.keep_ns ? reports_ : !options_.outputs.empty(); }
  const std::string& fallback_reason() const { return fallback_; }

 private:
  enum class Request : uint8_t { kNone, kStop, kDump };

  Result<void> start_sampling();
  Result<void> start_collector();
  void collect();
  void look(bool is_last);
  void end_sampling();
  void turn_window(uint64_t now_ns);
  void check_arming();
  void forget_old();
  void report_spike();
  Result<void> answer_to(Request request, const std::string& path, int fd);
  Result<void> write_outputs(const std::string& path, int fd, const std::string& cause = "");
  SessionFacts facts();
  void add_losses(Diagnostics& losses) const;
  OwnCost own_cost();
  Result<void> ask(Request request, const std::string& path, int fd = -1);
  double delivered_hz() const;

  const Options options_;
  Surroundings around_;
  Recording recording_;
  TickClock clock_;
  SpikeWatch spikes_;
  uint64_t reports_ = 0, spike_reports_ = 0;
  std::string failed_report_;
  inproc::InterruptSetting setting_;
  std::string fallback_;
  uint64_t start_ns_ = 0, start_realtime_ns_ = 0, end_ns_ = 0, next_scan_ns_ = 0, next_calibration_ns_ = 0, next_check_ns_ = 0;
  uint64_t renewed_events_ = 0, taken_signals_ = 0;
  uint64_t collector_cpu_ns_ = 0;
  bool window_is_on_ = true, ended_ = false, has_no_signal_ = false, is_program_over_ = false;
  uint64_t window_on_total_ns_ = 0;

  std::mutex work_;                 // held while the collector looks or writes
  std::mutex mutex_;                // of what follows
  std::condition_variable asked_, answered_;
  Request request_ = Request::kNone;
  std::string request_path_;
  int request_fd_ = -1;
  Result<void> answer_;
  bool is_done_ = false;
  pthread_t collector_{};
  bool has_collector_ = false;
};

}  // namespace cprof::embed
