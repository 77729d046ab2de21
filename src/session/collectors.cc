#include "session/collectors.h"

#include <poll.h>
#include <sys/types.h>

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "collect/bpf/bpf_collector.h"
#include "collect/perf/cpu_list.h"
#include "collect/perf/perf_collector.h"
#include "collect/perf/running_tasks.h"
#include "object/cgroups.h"
#include "session/record.h"

namespace cprof::session {
namespace {

constexpr uint64_t kCommandFreqHz = 999, kRunningFreqHz = 199;

template <typename Collector>
class Run : public RunningCollector {
 public:
  Run(std::unique_ptr<Collector> collector, uint64_t freq_hz) : collector_(std::move(collector)), freq_hz_(freq_hz) {}

  event::Collector& get() override { return *collector_; }
  // BPF copies stacks as an exception, and then as much as it can.
  void note_truncated(uint64_t truncated, uint64_t total) override {
    if constexpr (requires { collector_->note_truncated(truncated, total); }) collector_->note_truncated(truncated, total);
  }
  void hurry() override { collector_->hurry(); }
  int command_status() const override { return collector_->child_status(); }
  bool terminate_command() override {
    auto pid = collector_->command_pid();
    if (!pid || collector_->child_status() >= 0 || kill(*pid, SIGTERM) != 0) return false;
    kill(*pid, SIGCONT);  // one that is stopped ends no sooner
    return true;
  }
  uint64_t samples_per_second() const override { return freq_hz_ == collect::kMaxFrequency ? 0 : freq_hz_; }
  uint64_t bytes_read() const override { return collector_->bytes_read(); }

 private:
  std::unique_ptr<Collector> collector_;
  uint64_t freq_hz_;
};

Result<collect::PerfTarget> perf_target(const Target& target, const std::string& cpus) {
  collect::PerfTarget result;
  result.command = target.command;
  result.pids = target.pids;
  result.tids = target.tids;
  result.all_cpus = target.whole_machine;
  if (!target.cgroup.empty()) result.cgroup = TRY(object::find_cgroup(target.cgroup, object::cgroup_roots()));
  if (!target.container.empty()) result.cgroup = TRY(object::find_container(target.container, object::cgroup_roots()));
  if (!cpus.empty()) result.cpus = TRY(collect::parse_cpu_list(cpus));
  if (!target.name.empty()) {
    result.pids = TRY(collect::find_by_name(target.name));
    if (result.pids.empty()) return fail("no running process is named '" + target.name + "'");
  }
  return result;
}

Result<collect::PerfOptions> perf_options(const RecordOptions& options) {
  collect::PerfOptions perf;
  perf.target = TRY(perf_target(options.target, options.cpus));
  perf.events = options.events;
  perf.freq_hz = options.max_freq   ? collect::kMaxFrequency
                 : options.freq_hz  ? options.freq_hz
                 : options.target.command.empty() ? kRunningFreqHz
                                                  : kCommandFreqHz;
  perf.period = options.period;
  perf.stack_mode = options.frame_pointers ? collect::StackMode::kFramePointer : collect::StackMode::kDwarf;
  perf.stack_bytes = options.stack_bytes;
  perf.kernel = options.kernel;
  perf.inherit = options.inherit;
  perf.off_cpu = options.off_cpu;
  perf.delay_ns = static_cast<uint64_t>(options.delay_s * 1e9);
  return perf;
}

Result<std::unique_ptr<RunningCollector>> make_perf(const RecordOptions& options) {
  collect::PerfOptions perf = TRY(perf_options(options));
  uint64_t freq_hz = perf.freq_hz;
  return std::make_unique<Run<collect::PerfCollector>>(TRY(collect::PerfCollector::make(std::move(perf))), freq_hz);
}

Result<std::unique_ptr<RunningCollector>> make_bpf(const RecordOptions& options) {
  collect::BpfOptions bpf;
  bpf.perf = TRY(perf_options(options));
  bpf.off_cpu = options.off_cpu;
  bpf.count_only = !needs_times(options);
  if (options.window_s > 0) {  // what is kept of stacks should not outlast what is kept of samples
    const auto quarter_ns = static_cast<uint64_t>(options.window_s * 1e9 / 4);
    bpf.repeat_stacks_ns = std::clamp<uint64_t>(quarter_ns, 500'000'000, bpf.repeat_stacks_ns);
  }
  bpf.max_depth = static_cast<uint32_t>(std::min<size_t>(options.pipeline.max_depth, UINT32_MAX));
  uint64_t freq_hz = bpf.perf.freq_hz;
  return std::make_unique<Run<collect::BpfCollector>>(TRY(collect::BpfCollector::make(std::move(bpf))), freq_hz);
}

// What bpf does too, but less of it than was asked for.
std::string reason_for_perf(const RecordOptions& options) {
  if (options.stack_bytes) return "--stack-size is about the copies of stacks that perf events take";
  if (options.freq_hz > collect::kMostClockHz) return fmt::format("-F {}: bpf takes at most {} Hz", options.freq_hz, collect::kMostClockHz);
  if (options.pipeline.max_depth > collect::kMostDepth)
    return fmt::format("--max-depth {}: bpf walks at most {} frames", options.pipeline.max_depth, collect::kMostDepth);
  bool is_clock = options.events.empty() || std::ranges::any_of(options.events, [](auto& name) { return name.contains("-clock"); });
  if (options.period && options.period < collect::kLeastClockPeriodNs && is_clock)
    return fmt::format("-c {}: bpf takes a clock's sample every {} ns at most", options.period, collect::kLeastClockPeriodNs);
  return {};
}

// What refuses bpf for another reason than bpf (no such process, no such event) refuses perf with the same words.
Result<std::unique_ptr<RunningCollector>> choose(const RecordOptions& options) {
  std::string reason = reason_for_perf(options);
  if (reason.empty()) {
    auto bpf = make_bpf(options);
    if (bpf) return bpf;
    reason = bpf.error().message;
  }
  auto perf = TRY(make_perf(options));
  perf->set_why_not_bpf(std::move(reason));
  return perf;
}

}  // namespace

Result<std::unique_ptr<RunningCollector>> make_collector(const RecordOptions& options) {
  if (options.backend == Backend::kBpf) return make_bpf(options);
  if (options.backend == Backend::kPerf) return make_perf(options);
  return choose(options);
}

}  // namespace cprof::session
