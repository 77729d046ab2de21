// The state lane: switch intervals of a thread and what lies between them.
#include <algorithm>

#include "timeline/thread_samples.h"
#include "timeline/timeline.h"

namespace cprof::timeline {
namespace {

using profile::Profile;
using profile::OffCpuInterval;
using profile::SwitchInterval;
using profile::ThreadId;
using profile::WaitClass;

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
  for (const auto& off : profile.off_cpu) lives[off.thread.index()].cover(off.start_ns, off.end_ns);
  for (size_t i = 0; i < lives.size(); ++i) {
    const profile::Thread& thread = profile.threads[i];
    const uint64_t start = std::max(thread.start_ns, profile.run.start_ns);
    const uint64_t end = thread.end_ns != 0 ? thread.end_ns : profile.run.end_ns;
    if (start != 0 && end > start) lives[i].cover(start, end);
  }
  return lives;
}

// Joins neighbours that tell the same and drops empty ones.
class Lane {
 public:
  Lane(ThreadId thread, const std::function<void(const StateSlice&)>& on_state) : on_state_(on_state) {
    pending_.thread = thread;
  }

  void add(uint64_t start_ns, uint64_t end_ns, const StateSlice& what) {
    if (end_ns <= start_ns) return;
    const bool same = pending_.state == what.state && pending_.interval == what.interval &&
                      pending_.wait_class == what.wait_class && pending_.end_ns > pending_.start_ns;
    if (pending_.end_ns == start_ns && same) {
      pending_.end_ns = end_ns;
      return;
    }
    flush();
    const ThreadId thread = pending_.thread;
    pending_ = what;
    pending_.thread = thread;
    pending_.start_ns = start_ns;
    pending_.end_ns = end_ns;
  }

  void flush() {
    if (pending_.end_ns > pending_.start_ns) on_state_(pending_);
  }

 private:
  const std::function<void(const StateSlice&)>& on_state_;
  StateSlice pending_;
};

StateSlice plain(ThreadState state) {
  const bool runnable = state == ThreadState::kRunnable;
  return {.state = state, .wait_class = runnable ? WaitClass::kSched : WaitClass::kOther};
}

// What lies between two times on a CPU: what the off-CPU intervals tell, and `between` where they tell nothing.
class OffCpuGaps {
 public:
  explicit OffCpuGaps(const ThreadRows<OffCpuInterval>::Part& waits) : waits_(waits) {}

  void fill(Lane& lane, uint64_t start_ns, uint64_t end_ns, ThreadState between) {
    uint64_t at = start_ns;
    while (next_ < waits_.rows.size() && waits_.rows[next_].end_ns <= at) ++next_;
    for (; next_ < waits_.rows.size() && waits_.rows[next_].start_ns < end_ns; ++next_) {
      const OffCpuInterval& wait = waits_.rows[next_];
      lane.add(at, wait.start_ns, plain(between));
      at = std::max(at, wait.start_ns);
      const auto row = static_cast<uint32_t>(waits_.first + next_);
      const uint64_t runnable = std::clamp(wait.runnable_ns(), at, end_ns), end = std::clamp(wait.end_ns, at, end_ns);
      lane.add(at, runnable, {.state = ThreadState::kWaiting, .wait_class = wait.wait_class, .interval = row});
      lane.add(runnable, end, {.state = ThreadState::kRunnable, .wait_class = WaitClass::kSched, .interval = row});
      at = end;
      if (wait.end_ns > end_ns) break;
    }
    lane.add(at, end_ns, plain(between));
  }

 private:
  const ThreadRows<OffCpuInterval>::Part& waits_;
  size_t next_ = 0;
};

void fill_lane(Lane& lane, const Extent& life, std::span<const SwitchInterval> on_cpu, OffCpuGaps gaps) {
  uint64_t at = life.start_ns;
  ThreadState between = ThreadState::kUnknown;
  for (const SwitchInterval& on : on_cpu) {
    const uint64_t start = std::max(on.start_ns, at);  // records that overlap would make overlapping slices
    gaps.fill(lane, at, start, between);
    lane.add(start, on.end_ns, plain(ThreadState::kOnCpu));
    at = std::max(start, on.end_ns);
    between = on.preempted ? ThreadState::kRunnable : ThreadState::kWaiting;
  }
  gaps.fill(lane, at, life.end_ns, between);
  lane.flush();
}

}  // namespace

void for_each_state(const Profile& profile, const std::function<void(const StateSlice&)>& on_state) {
  const std::vector<Extent> lives = recorded_lives(profile);
  ThreadRows<SwitchInterval> on_cpu(profile.on_cpu);
  ThreadRows<OffCpuInterval> off_cpu(profile.off_cpu);
  for (size_t i = 0; i < profile.threads.size(); ++i) {
    Lane lane(ThreadId(i), on_state);
    const auto waits = off_cpu.next(i);
    fill_lane(lane, lives[i], on_cpu.next(i).rows, OffCpuGaps(waits));
  }
}

}  // namespace cprof::timeline
