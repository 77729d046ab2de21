// The stacks of the calls that uprobe tells, as a profile: its programs walk them, the pipeline unwinds what those could not and
// names all of it. Used by the verb, on one thread, between loading the object and letting go of it.
#pragma once

#include <memory>

#include "collect/bpf/uprobe_stack_source.h"
#include "pipeline/pipeline.h"

namespace cprof::session {

class CallStackRecording {
 public:
  struct Options {
    collect::PerfTarget target;
    bool runs_already = true;  // false: a command that is still to become its program
    pipeline::Options pipeline;
  };
  // From here on the target is followed; to be called before its functions are probed.
  static Result<std::unique_ptr<CallStackRecording>> start(collect::UprobeObject& object, const Options& options);
  ~CallStackRecording();

  // Every 50 ms or so.
  Result<void> poll();
  // When the probes are gone: a sample for each call that was told and has a stack, of the call's thread and at its end, the
  // function itself at the leaf.
  Result<profile::Profile> finish();

 private:
  CallStackRecording() = default;

  std::unique_ptr<pipeline::LiveAccess> live_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
  std::unique_ptr<collect::UprobeStackSource> source_;
};

}  // namespace cprof::session
