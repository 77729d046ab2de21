// The state lane: switch intervals of a thread and what lies between them.
#include <algorithm>

#include "timeline/timeline.h"

namespace cprof::timeline {
namespace {

using profile::Profile;
using profile::SwitchInterval;
using profile::ThreadId;

struct Extent {
  uint64_t start_ns = UINT64_MAX, end_ns = 0;
  void cover(uint64_t start, uint64_t end) {
    start_ns = std::min(start_ns, start);
    end_ns = std::max(end_ns, end);
  }
};

// From a thread's birth, or the run's start when it is older, to its end or the run's; never less than its records.
std::vector<Extent> recorded_lives(const Profile& profile) {
  std::vector<Extent> lives(profile.threads.size());
  for (const auto& sample : profile.samples) lives[sample.thread.index()].cover(sample.time_ns, sample.time_ns);
  for (const auto& on : profile.on_cpu) lives[on.thread.index()].cover(on.start_ns, on.end_ns);
  for (size_t i = 0; i < lives.size(); ++i) {
    const profile::Thread& thread = profile.threads[i];
    const uint64_t start = std::max(thread.start_ns, profile.run.start_ns);
    const uint64_t end = thread.end_ns != 0 ? thread.end_ns : profile.run.end_ns;
    if (start != 0 && end > start) lives[i].cover(start, end);
  }
  return lives;
}

// Joins neighbours of one state and drops empty ones.
class Lane {
 public:
  Lane(ThreadId thread, const std::function<void(const StateSlice&)>& on_state) : on_state_(on_state) {
    pending_.thread = thread;
  }

  void add(uint64_t start_ns, uint64_t end_ns, ThreadState state) {
    if (end_ns <= start_ns) return;
    if (pending_.end_ns == start_ns && pending_.state == state && pending_.end_ns > pending_.start_ns) {
      pending_.end_ns = end_ns;
      return;
    }
    flush();
    pending_.start_ns = start_ns;
    pending_.end_ns = end_ns;
    pending_.state = state;
  }

  void flush() {
    if (pending_.end_ns > pending_.start_ns) on_state_(pending_);
  }

 private:
  const std::function<void(const StateSlice&)>& on_state_;
  StateSlice pending_;
};

void fill_lane(Lane& lane, const Extent& life, std::span<const SwitchInterval> on_cpu) {
  uint64_t at = life.start_ns;
  ThreadState between = ThreadState::kUnknown;
  for (const SwitchInterval& on : on_cpu) {
    const uint64_t start = std::max(on.start_ns, at);  // records that overlap would make overlapping slices
    lane.add(at, start, between);
    lane.add(start, on.end_ns, ThreadState::kOnCpu);
    at = std::max(start, on.end_ns);
    between = on.preempted ? ThreadState::kRunnable : ThreadState::kWaiting;
  }
  lane.add(at, life.end_ns, between);
  lane.flush();
}

}  // namespace

void for_each_state(const Profile& profile, const std::function<void(const StateSlice&)>& on_state) {
  const std::vector<Extent> lives = recorded_lives(profile);
  size_t first = 0;
  for (size_t i = 0; i < profile.threads.size(); ++i) {
    size_t last = first;
    while (last < profile.on_cpu.size() && profile.on_cpu[last].thread == ThreadId(i)) ++last;
    Lane lane(ThreadId(i), on_state);
    fill_lane(lane, lives[i], std::span(profile.on_cpu).subspan(first, last - first));
    first = last;
  }
}

}  // namespace cprof::timeline
