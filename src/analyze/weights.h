// What a view counts. Two weights are never confused: samples, straight from the raw samples, and durations, which the
// caller takes from the timeline and hands in. Every view shows the title that stands here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace cprof::analyze {

struct WeightSelection {
  enum class Kind : uint8_t {
    kSamples,  // each sample counts 1; of untimed profiles the metric that counts samples, else the default metric
    kMetric,   // each sample counts its weight in the metric's unit
    kWall,     // each stack counts how long the timeline shows it
  };
  Kind kind = Kind::kSamples;
  profile::MetricId metric{};           // invalid: the default metric
  // Nanoseconds, from timeline::wall_weights: one each of profile.samples and of profile.off_cpu, and for the latter how
  // long the thread's user stack was shown after the wait.
  std::span<const uint64_t> wall = {}, wall_off_cpu = {}, wall_resumed = {};
};

struct Weights {
  std::vector<int64_t> of_samples;     // one each in profile.samples' order; 0: of another metric
  std::vector<int64_t> of_aggregates;  // the same for profile.aggregates
  std::vector<int64_t> of_off_cpu = {};  // the same for profile.off_cpu; empty: none counts
  std::vector<int64_t> of_resumed = {};  // counts for the user part of the interval's stack (profile::user_part); or empty
  int64_t total = 0;                   // of all; stays at its limit when it leaves int64
  std::string title;                   // "samples of cpu-clock", "cycles", "wall time"
  std::string unit;                    // "count", "nanoseconds", "bytes", ...
};

// The one named by run.default_metric, else the first that is time, else the first. Invalid: none at all.
profile::MetricId default_metric(const profile::Profile& profile);
profile::MetricId find_metric(const profile::Profile& profile, std::string_view name);

Weights sample_weights(const profile::Profile& profile, const WeightSelection& selection);

// Sums that stay at int64's limits instead of wrapping.
constexpr int64_t add_clamped(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b < 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace cprof::analyze
