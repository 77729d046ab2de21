// A recording that is looked at while it goes on and never written: it keeps its last seconds, and gives them with names
// as often as asked. Used by cprof top, on one thread.
#pragma once

#include <memory>
#include <string>

#include "pipeline/live_namer.h"
#include "session/collectors.h"
#include "session/record.h"
#include "session/truncation_feedback.h"

namespace cprof::session {

class LiveRecording {
 public:
  // Of the options: the target, what and how to sample, window_s. Outputs are none.
  static Result<std::unique_ptr<LiveRecording>> make(const RecordOptions& options);
  ~LiveRecording();

  // The target runs from here on. A command that cannot be run: command_status() says so.
  Result<void> start();
  // False: the target has ended.
  Result<bool> poll(int timeout_ms);
  // What the last seconds hold.
  profile::Profile look();
  // A command that still runs is asked to end, and the collection is over.
  Result<void> finish();

  int command_status() const { return collector_->command_status(); }
  uint64_t samples() const { return pipeline_->stack_counts().samples; }
  const std::string& why_not_bpf() const { return collector_->why_not_bpf(); }
  const Diagnostics& diagnostics() const { return collector_->get().diagnostics(); }

 private:
  LiveRecording() = default;

  std::unique_ptr<pipeline::LiveAccess> live_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
  std::unique_ptr<RunningCollector> collector_;
  std::unique_ptr<TruncationFeedback> feedback_;
  std::unique_ptr<pipeline::LiveNamer> namer_;
  uint64_t live_reads_ = 0;
  bool is_over_ = false;
};

}  // namespace cprof::session
