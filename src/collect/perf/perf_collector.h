// The perf events backend: opens events and rings for the target, describes what already runs, and delivers what the
// rings hold in time order. Used by the session, on one thread. Never writes anywhere but to the sink; never ends the
// target: a command that still runs at close() goes on (command_pid() tells whom to signal).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "collect/perf/command.h"
#include "collect/perf/event_set.h"
#include "collect/perf/perf_api.h"
#include "collect/perf/perf_options.h"
#include "collect/perf/switch_rate.h"
#include "event/event.h"
#include "event/group_deltas.h"
#include "event/perf_record.h"
#include "event/record_sorter.h"

namespace cprof::collect {

class PerfCollector final : public event::Collector {
 public:
  // Checks the options and resolves event names; opens nothing yet. api is for tests.
  static Result<std::unique_ptr<PerfCollector>> make(PerfOptions options, PerfApi& api = kernel_perf_api());
  ~PerfCollector() override;

  Result<void> open(event::EventSink& sink) override;
  Result<void> start() override;
  Result<bool> poll(int timeout_ms) override;
  Result<void> close() override;
  const Diagnostics& diagnostics() const override { return diagnostics_; }

  // Of the last second's `total` stacks, `truncated` were cut by the snapshot's size. With stack_bytes 0 and nothing
  // lost meanwhile, more than 0.1 % makes the next poll() reopen the events with larger snapshots: the largest, or in
  // small rings twice as large.
  void note_truncated(uint64_t truncated, uint64_t total);

  // The next poll() sleeps one sampling interval at most: memory of live threads is wanted, and does not wait.
  void hurry();

  // A command's exit code, 128 + signal, 127 or 126 when it could not run; -1 while it runs or without a command.
  int child_status() const { return command_ ? command_->status() : -1; }
  std::optional<int32_t> command_pid() const;
  uint64_t cpu_ns() const;                            // CPU time of this thread since open()
  uint64_t bytes_read() const { return bytes_read_; }  // of records, from all rings
  uint64_t lost_records() const { return lost_records_; }
  uint32_t stack_bytes() const { return stack_bytes_; }

  // For a backend that takes the samples itself (side_band_only). After open():
  const std::vector<EventSpec>& events() const { return specs_; }
  const std::vector<int>& cpus() const { return cpus_; }
  bool may_sample_kernel() const { return events_->choices().kernel; }
  std::vector<int32_t> live_tids() const;             // -1: all

 private:
  PerfCollector(PerfOptions options, PerfApi& api);

  Result<void> resolve_events();
  Result<void> choose_tasks();
  Result<void> open_until_stable();
  Result<void> fit_stacks_to_rings();
  event::SessionInfo session_info() const;
  Result<void> describe_running();
  Result<void> watch_targets();

  Result<size_t> pass(bool everything);
  size_t read_batch();
  uint64_t safe_bound(bool everything) const;
  Result<void> deliver(uint64_t until_ns);
  Result<void> deliver_record(const event::RecordSorter::Item& item);
  Result<void> deliver_group(event::Sample& sample);
  Result<void> tell_untold_losses(uint64_t now_ns);
  void note_event(const event::Event& event);
  void release_rings();
  void retire_rings();
  void wait(int timeout_ms);
  uint64_t interval_ns() const;
  Result<void> periodic_work();
  Result<void> apply_stack_change();
  Result<void> apply_switch_period();
  void note_switch(size_t ring, std::span<const std::byte> record, uint64_t time_ns);
  bool target_ended();

  PerfOptions options_;
  PerfApi& api_;
  Diagnostics diagnostics_;
  event::RecordDecoder decoder_;
  event::GroupDeltas groups_;
  event::RecordSorter sorter_;
  std::vector<EventSpec> specs_;
  std::unique_ptr<EventSet> events_;
  std::optional<Command> command_;
  std::vector<event::Task> tasks_;             // the target's, when it is pids or tids
  std::unordered_map<int32_t, int32_t> live_;  // tid -> pid of the traced tasks, as the records tell; not for all CPUs
  std::vector<Fd> pidfds_;                     // of target processes, to see them end
  std::vector<int> cpus_;
  event::EventSink* sink_ = nullptr;
  event::Event event_;
  bool wide_ = false;  // all tasks of a CPU or cgroup
  bool has_small_rings_ = false;
  bool closed_ = false, sampling_ = false, mappings_changed_ = false;
  uint32_t stack_bytes_ = 0, wanted_stack_bytes_ = 0;
  uint64_t start_ns_ = 0, sampling_at_ns_ = 0, last_pass_ns_ = 0, last_period_ns_ = 0, backoff_ns_ = 0;
  uint64_t bytes_read_ = 0, lost_records_ = 0, lost_noted_ = 0, cpu_at_open_ns_ = 0;
  uint64_t reported_late_ = 0;
  SwitchRate switch_rate_;
  uint64_t switch_period_ = 1;        // every how many switches have a stack
  bool keeps_switch_period_ = false;  // it could not be changed once
};

}  // namespace cprof::collect
