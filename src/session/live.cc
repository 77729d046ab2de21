#include "session/live.h"

#include <algorithm>

#include "base/clock.h"

namespace cprof::session {

Result<std::unique_ptr<LiveRecording>> LiveRecording::make(const RecordOptions& options) {
  std::unique_ptr<LiveRecording> recording(new LiveRecording());
  recording->live_ = pipeline::make_live_access();
  pipeline::Options pipeline_options = options.pipeline;
  pipeline_options.live = recording->live_.get();
  pipeline_options.window_ns = static_cast<uint64_t>(options.window_s * 1e9);
  pipeline_options.symbolize = false;  // at the end nobody asks any more
  pipeline_options.unwind = options.frame_pointers ? pipeline::UnwindMode::kFramePointer : pipeline::UnwindMode::kDwarf;
  recording->pipeline_ = std::make_unique<pipeline::Pipeline>(pipeline_options);
  recording->namer_ = std::make_unique<pipeline::LiveNamer>(pipeline_options);
  recording->collector_ = TRY(make_collector(options));
  recording->feedback_ = std::make_unique<TruncationFeedback>(recording->collector_->samples_per_second());
  TRY(recording->collector_->get().open(*recording->pipeline_));
  return recording;
}

LiveRecording::~LiveRecording() = default;

Result<void> LiveRecording::start() { return collector_->get().start(); }

Result<bool> LiveRecording::poll(int timeout_ms) {
  const bool more = TRY(collector_->get().poll(timeout_ms));
  feedback_->tell(*collector_, *pipeline_, monotonic_ns());
  if (const uint64_t reads = pipeline_->stack_counts().live; reads != live_reads_) {
    collector_->hurry();
    live_reads_ = reads;
  }
  return more;
}

profile::Profile LiveRecording::look() { return namer_->name(pipeline_->so_far()); }

Result<void> LiveRecording::finish() {
  if (std::exchange(is_over_, true)) return {};
  constexpr uint64_t kGraceNs = 2 * kSecondNs;
  const uint64_t end_ns = monotonic_ns() + kGraceNs;
  if (collector_->terminate_command())
    while (collector_->command_status() < 0 && monotonic_ns() < end_ns)
      if (!TRY(collector_->get().poll(50))) break;
  return collector_->get().close();
}

}  // namespace cprof::session
