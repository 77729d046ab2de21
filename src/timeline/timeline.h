// Stackdiff: discrete samples become gapless frame slices over a thread's life. Pure: a Profile in, slices out.
// Each frame of a sample lives until the thread's next sample; neighbouring samples are compared from the root; what
// vanished closes from the deepest up; the last sample lasts one sampling interval, less when the thread ends sooner.
// A wait that has a stack is a sample at the moment when the thread left the CPU; when it is back, the user part of that
// stack is shown until the next sample. A wait without a stack changes nothing: the frames before it go on.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profile/profile.h"

namespace cprof::timeline {

enum class Gaps : uint8_t { kCut, kExtend };

struct Options {
  profile::MetricId metric{};  // whose samples make the timeline; invalid: the first time metric, else the first
  Gaps gaps = Gaps::kExtend;   // kCut: frames end one interval after a sample when the next is over 3 away
  uint64_t interval_ns = 0;    // 0: the period, the rate, the median weight of a time metric, or distance
};

// What fits the profile: kExtend where switch records tell waiting from running, else kCut, for a long gap in an import
// may be anything.
Options default_options(const profile::Profile& profile);

// With metric and interval filled in: what the functions below will use. The interval is 1 when nothing tells it.
Options resolved(const profile::Profile& profile, Options options);

// One frame of the timeline: a function (or an inlined function) of one location.
struct FrameSlice {
  profile::ThreadId thread{};
  uint64_t start_ns = 0, end_ns = 0;
  uint32_t depth = 0;              // 0 is the root frame
  profile::LocationId location{};  // of the sample that opened it; invalid: [unknown], a sample without a stack
  uint16_t line = 0;               // index into that location's lines; 0 when it has none
};

// Slices of each thread in the order of start, then depth: parents before children, properly nested, none of length 0.
// A frame goes on from sample to sample while its function stays: by symbol, else by module and function start.
void for_each_slice(const profile::Profile& profile, const Options& options,
                    const std::function<void(const FrameSlice&)>& on_slice);

// How long each stack was shown. A thread's sum is the length of its sampled time.
struct WallWeights {
  std::vector<uint64_t> of_samples;  // in profile.samples' order; 0 for samples of other metrics
  std::vector<uint64_t> of_off_cpu;  // in profile.off_cpu's order: the wait's own stack
  std::vector<uint64_t> of_resumed;  // likewise: the user part of that stack (profile::user_part), after the wait
};
WallWeights wall_weights(const profile::Profile& profile, const Options& options);

enum class ThreadState : uint8_t { kOnCpu, kRunnable, kWaiting, kUnknown };

struct StateSlice {
  profile::ThreadId thread{};
  uint64_t start_ns = 0, end_ns = 0;
  ThreadState state = ThreadState::kUnknown;
  profile::WaitClass wait_class = profile::WaitClass::kOther;  // of kWaiting; kSched when kRunnable
  uint32_t interval = kNoInterval;                             // which row of profile.off_cpu tells this
  static constexpr uint32_t kNoInterval = 0xffffffff;
};

// What the threads did in their recorded life, from switch records, neighbours that tell the same joined. Before its
// first record, and throughout where there are none, a thread's state is kUnknown.
void for_each_state(const profile::Profile& profile, const std::function<void(const StateSlice&)>& on_state);

}  // namespace cprof::timeline
