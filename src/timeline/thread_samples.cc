#include "timeline/thread_samples.h"

namespace cprof::timeline {

ThreadSamples::ThreadSamples(const profile::Profile& profile, profile::MetricId metric)
    : first_(profile.threads.size() + 2) {
  // Counting sort: counts land two places up, so that the second pass leaves every start in its own place.
  for (const profile::Sample& sample : profile.samples)
    if (sample.metric == metric) ++first_[sample.thread.index() + 2];
  for (size_t i = 2; i < first_.size(); ++i) first_[i] += first_[i - 1];
  rows_.resize(first_.back());
  for (uint32_t i = 0; i < profile.samples.size(); ++i)
    if (profile.samples[i].metric == metric) rows_[first_[profile.samples[i].thread.index() + 1]++] = i;
}

}  // namespace cprof::timeline
