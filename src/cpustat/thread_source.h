// Where the numbers of cpustat come from: for each thread, sums that only grow. Two sources: programs in the kernel
// (exact), and /proc (waits by looking now and then). Used by Intervals' owner, on one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "profile/profile.h"

namespace cprof::cpustat {

inline constexpr size_t kWaitClasses = static_cast<size_t>(profile::WaitClass::kCount);
using WaitTimes = std::array<uint64_t, kWaitClasses>;  // of kSched always 0: that is runnable time

// Exactly one kind of target.
struct Target {
  std::vector<int32_t> pids, tids;
  bool whole_machine = false;
  std::string cgroup;  // a directory of the cgroup v2 hierarchy
  bool inherit = true;
};

// Since the thread was first seen.
struct ThreadSums {
  int32_t pid = 0, tid = 0;
  uint64_t start_ns = 0;  // of the thread, since boot: tells a reused tid apart
  std::string comm;
  bool has_ended = false;
  bool is_kernel = false;
  uint64_t cpu_ns = 0;
  uint64_t user_ns = 0, system_ns = 0;  // by the kernel's tick: how cpu_ns is split, no more
  uint64_t runnable_ns = 0;
  WaitTimes waits_ns{};
  uint64_t voluntary = 0, involuntary = 0, migrations = 0, wakeups = 0;
};

class ThreadSource {
 public:
  virtual ~ThreadSource() = default;
  virtual Result<void> start() = 0;
  // All threads as they are now; one that ended is given once more, the last time. Gives CLOCK_MONOTONIC's time.
  virtual Result<uint64_t> read(std::vector<ThreadSums>& into) = 0;
  // Between two reads: how long the caller may wait before it calls look(), at most. Never: no need.
  static constexpr uint64_t kNever = ~uint64_t{0};
  virtual uint64_t look_after_ns() const { return kNever; }
  virtual void look() {}
  // What was lost so far.
  virtual Diagnostics diagnostics() const = 0;
  virtual bool counts_wakeups() const { return true; }
};

Result<std::unique_ptr<ThreadSource>> make_bpf_source(const Target& target);
std::unique_ptr<ThreadSource> make_proc_source(const Target& target, std::string proc = "/proc");

}  // namespace cprof::cpustat
