#include "session/record.h"

#include <algorithm>

#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "format/perfdata/raw_writer.h"
#include "session/checkpoint.h"
#include "session/collectors.h"
#include "session/limits.h"
#include "session/stop_signals.h"
#include "session/truncation_feedback.h"

namespace cprof::session {
namespace {

constexpr int kPollTimeoutMs = 100;
constexpr uint64_t kProgressNs = 500'000'000;

uint64_t own_cpu_ns() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto ns = [](const timeval& t) { return static_cast<uint64_t>(t.tv_sec) * kSecondNs + static_cast<uint64_t>(t.tv_usec) * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

// What recording took of CPU and bytes. A profile of a part of the run, its last seconds for instance, gets that part's
// share of both.
class CostMeter {
 public:
  explicit CostMeter(bool is_of_parts) : is_of_parts_(is_of_parts) {}
  // Naming and writing do not count.
  void stop() {
    cpu_ns_ = own_cpu_ns() - cpu_before_;
    end_ns_ = monotonic_ns();
  }
  void tell(profile::RunInfo& run, uint64_t bytes) {
    if (end_ns_ == 0) stop();
    double share = is_of_parts_ ? static_cast<double>(run.end_ns - run.start_ns) / static_cast<double>(end_ns_ - start_ns_) : 1;
    share = std::clamp(share, 0.0, 1.0);
    run.collector_cpu_ns = static_cast<uint64_t>(static_cast<double>(cpu_ns_) * share);
    run.bytes_read = static_cast<uint64_t>(static_cast<double>(bytes) * share);
  }

 private:
  bool is_of_parts_;
  uint64_t cpu_before_ = own_cpu_ns(), start_ns_ = monotonic_ns(), cpu_ns_ = 0, end_ns_ = 0;
};

Result<void> run(RunningCollector& collector, pipeline::Pipeline& pipeline, const RecordOptions& options, Limits& limits,
                 Checkpoint& checkpoint, StopSignals& signals, const std::function<void(const Progress&)>& progress) {
  uint64_t start = monotonic_ns(), next_progress = start + kProgressNs;
  uint64_t end = options.duration_s ? start + static_cast<uint64_t>(*options.duration_s * 1e9) : ~uint64_t{0};
  uint64_t live_before = 0;
  TruncationFeedback feedback(collector.samples_per_second());
  while (!signals.requested()) {
    uint64_t now = monotonic_ns();
    if (now >= end) break;
    uint64_t left_ms = (end - now) / 1'000'000 + 1;
    bool more = TRY(collector.get().poll(static_cast<int>(std::min<uint64_t>(kPollTimeoutMs, left_ms))));
    if (!more) break;
    if (!TRY(limits.look(signals.take_dump_request()))) {
      pipeline.add_note("stopped_at_max_size", "the recording was stopped at its --max-size");
      break;
    }
    checkpoint.look(now);
    feedback.tell(collector, pipeline, now);
    if (uint64_t live = pipeline.stack_counts().live; live != live_before) {
      collector.hurry();
      live_before = live;
    }
    if (now < next_progress || !progress) continue;
    next_progress = now + kProgressNs;
    progress({pipeline.stack_counts().samples, static_cast<double>(now - start) / 1e9});
  }
  return {};
}

// A command that still runs when its recording is over (-d, Ctrl-C) is asked to end, and recorded until it does.
constexpr uint64_t kGraceNs = 2 * kSecondNs;

Result<void> end_command(RunningCollector& collector) {
  if (!collector.terminate_command()) return {};
  uint64_t end = monotonic_ns() + kGraceNs;
  while (collector.command_status() < 0 && monotonic_ns() < end)
    if (!TRY(collector.get().poll(kPollTimeoutMs))) break;
  return {};
}

Result<std::unique_ptr<format::RawWriter>> open_raw(const RecordOptions& options) {
  if (options.raw_path.empty()) return nullptr;
  return std::make_unique<format::RawWriter>(TRY(OutputFile::create(options.raw_path)));
}

}  // namespace

Result<Recorded> record(const RecordOptions& options, const Listener& listener) {
  auto raw = TRY(open_raw(options));
  auto live = pipeline::make_live_access();
  pipeline::Options pipeline_options = options.pipeline;
  pipeline_options.live = live.get();
  pipeline_options.journal = raw.get();
  pipeline_options.window_ns = static_cast<uint64_t>(options.window_s * 1e9);
  pipeline_options.unwind = options.frame_pointers ? pipeline::UnwindMode::kFramePointer : pipeline::UnwindMode::kDwarf;
  pipeline::Pipeline pipeline(pipeline_options);
  auto collector = TRY(make_collector(options));
  if (!collector->why_not_bpf().empty())
    pipeline.add_note("backend_perf", "recorded with perf events: " + collector->why_not_bpf());

  CostMeter cost(options.window_s > 0 || options.rotate > 0);
  auto complete = [&](profile::Profile& profile) {
    profile.diagnostics.merge(collector->get().diagnostics());
    cost.tell(profile.run, collector->bytes_read());
    if (options.before_writing) options.before_writing(profile);
  };
  Limits limits(options, pipeline, raw.get(), complete, listener);
  Checkpoint checkpoint(options.outputs, pipeline, collector->get());
  StopSignals signals(options.window_s > 0);
  TRY(collector->get().open(pipeline));
  Recorded recorded;
  if (auto started = collector->get().start(); !started) {
    recorded.command_status = collector->command_status();
    if (recorded.command_status < 0) return std::unexpected(started.error());
    recorded.command_error = started.error();
    return recorded;
  }
  if (auto ran = run(*collector, pipeline, options, limits, checkpoint, signals, listener.progress); !ran) recorded.collection_error = ran.error();
  if (auto ended = end_command(*collector); !ended && !recorded.collection_error) recorded.collection_error = ended.error();
  cost.stop();
  auto closed = collector->get().close();
  if (!closed && !recorded.collection_error) recorded.collection_error = closed.error();

  recorded.command_status = collector->command_status();
  limits.finish(recorded);
  checkpoint.finish(recorded);
  recorded.profile = pipeline.take();
  complete(recorded.profile);
  checkpoint.tell(recorded.profile.diagnostics);
  if (raw && raw->dropped())
    recorded.profile.diagnostics.add("raw_events_dropped", Severity::kDataLoss,
                                     "events too large for the raw capture, which lacks them", raw->dropped());
  return recorded;
}

bool needs_times(const RecordOptions& options) {
  bool is_bounded = options.max_bytes || options.window_s > 0;
  if (options.off_cpu || is_bounded || !options.raw_path.empty() || options.write.weight != format::Weight::kSamples) return true;
  return !std::ranges::all_of(options.outputs, [](const Output& output) { return output.format->is_untimed; });
}

Result<void> check_outputs(const std::vector<Output>& outputs) {
  for (const Output& output : outputs) TRY(OutputFile::check(output.path));
  return {};
}

Result<void> write_outputs(const profile::Profile& profile, const std::vector<Output>& outputs,
                           const format::WriteOptions& options, const LossListener& on_losses) {
  for (const Output& output : outputs) {
    Diagnostics losses;
    format::WriteOptions counted = options;
    counted.losses = &losses;
    OutputFile file = TRY(OutputFile::create(output.path));
    TRY(output.format->write(profile, file, counted));
    TRY(file.commit());
    on_losses(output.path, losses);
  }
  return {};
}

Result<void> write_recorded(const Recorded& recorded, const format::WriteOptions& options, const LossListener& on_losses) {
  TRY(write_outputs(recorded.profile, recorded.outputs, options, on_losses));
  for (const std::string& path : recorded.outdated) unlink(path.c_str());
  return {};
}

}  // namespace cprof::session
