// Samples that were counted where they were taken, as the untimed values of a profile: "samples" of its main metric, and
// each metric's weight. Called by the pipeline. A profile has times or counts, never a mixture: where some samples of a
// counted run came one by one, finish() counts them too.
#pragma once

#include <vector>

#include "event/event.h"
#include "pipeline/stack_defs.h"
#include "profile/builder.h"

namespace cprof::pipeline {

class Counts {
 public:
  Counts(profile::ProfileBuilder& builder, const std::vector<profile::MetricId>& metrics)
      : builder_(builder), metrics_(metrics) {}

  void add(const event::Count& count, profile::ThreadId thread, const KnownStack& stack);
  void finish();

 private:
  void add(profile::MetricId metric, profile::ThreadId thread, const KnownStack& stack, uint64_t samples, uint64_t weight);
  profile::MetricId main_metric() const;

  profile::ProfileBuilder& builder_;
  const std::vector<profile::MetricId>& metrics_;
  profile::MetricId samples_;  // valid once something was counted
};

}  // namespace cprof::pipeline
