// The eBPF backend: programs in the kernel take samples and unwind them there by tables that are published from here; the
// perf backend runs beside it for all that is not a sample (targets, mappings, names, forks, exits, and without off-CPU
// the switches). What both deliver reaches the sink as one stream in time order. Used by the session, on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "collect/bpf/bpf_options.h"
#include "collect/bpf/sampler_events.h"
#include "collect/bpf/sampler_object.h"
#include "collect/bpf/walk_stream.h"
#include "collect/perf/perf_collector.h"
#include "event/event.h"

namespace cprof::collect {

class BpfCollector final : public event::Collector, private WalkStream::Owner {
 public:
  // Checks the options and loads the programs, so that a machine which cannot is known before anything is recorded.
  static Result<std::unique_ptr<BpfCollector>> make(BpfOptions options);
  ~BpfCollector() override;

  Result<void> open(event::EventSink& sink) override;
  Result<void> start() override;
  Result<bool> poll(int timeout_ms) override;
  Result<void> close() override;
  const Diagnostics& diagnostics() const override { return diagnostics_; }

  void hurry() { backoff_ms_ = 1; }
  int child_status() const { return side_->child_status(); }
  std::optional<int32_t> command_pid() const { return side_->command_pid(); }
  uint64_t bytes_read() const { return (stream_ ? stream_->bytes_read() : 0) + side_->bytes_read(); }

 private:
  BpfCollector(BpfOptions options, std::unique_ptr<PerfCollector> side);
  sampler_settings settings() const;
  Result<void> load();
  Result<void> attach();
  Result<void> name_task(int32_t tid, bool on);
  Result<void> name_tasks();
  Result<void> follow_cpus();
  void describe(event::SessionInfo& info) override;
  bool on_sample(event::Sample& sample) override;
  Result<void> before_finish(uint64_t end_ns) override;
  Result<void> deliver_counts(uint64_t now_ns, bool is_last);
  Result<void> deliver_count(const sampler_count_key& key, const sampler_count& count, uint64_t now_ns);
  void wait(int timeout_ms);
  Result<void> periodic_work();
  void report_losses();

  BpfOptions options_;
  std::unique_ptr<PerfCollector> side_;
  Diagnostics diagnostics_;
  std::unique_ptr<SamplerObject> object_;
  std::unique_ptr<SamplerEvents> events_;
  std::unique_ptr<WalkStream> stream_;
  event::EventSink* sink_ = nullptr;
  std::vector<std::pair<sampler_count_key, sampler_count>> early_counts_;  // of stacks that are still to be told
  bool wide_ = false, closed_ = false, sampling_ = false;
  int backoff_ms_ = 1;
  uint64_t samples_delivered_ = 0, sampling_at_ns_ = 0, last_period_ns_ = 0, last_counts_ns_ = 0;
  uint64_t counts_period_ns_ = 0;
};

}  // namespace cprof::collect
