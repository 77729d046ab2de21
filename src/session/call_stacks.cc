#include "session/call_stacks.h"

namespace cprof::session {

Result<std::unique_ptr<CallStackRecording>> CallStackRecording::start(collect::UprobeObject& object, const Options& options) {
  std::unique_ptr<CallStackRecording> recording(new CallStackRecording());
  recording->live_ = pipeline::make_live_access();
  pipeline::Options pipeline_options = options.pipeline;
  pipeline_options.live = recording->live_.get();
  recording->pipeline_ = std::make_unique<pipeline::Pipeline>(pipeline_options);
  recording->source_ = TRY(collect::UprobeStackSource::make(object, options.target, options.runs_already));
  TRY(recording->source_->open(*recording->pipeline_));
  TRY(recording->source_->start());
  return recording;
}

CallStackRecording::~CallStackRecording() = default;

Result<void> CallStackRecording::poll() {
  TRY(source_->poll(0));
  return {};
}

Result<profile::Profile> CallStackRecording::finish() {
  TRY(source_->close());
  profile::Profile profile = pipeline_->take();
  profile.diagnostics.merge(source_->diagnostics());
  return profile;
}

}  // namespace cprof::session
