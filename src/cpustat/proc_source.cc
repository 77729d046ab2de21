// What /proc tells, where BPF cannot run: CPU and runnable time exactly (schedstat), switches from status. How long a
// thread waited is what is left of its time; for what, is seen by looking now and then at what it waits in (wchan), as
// often as costs 2 % of a CPU at most.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/clock.h"
#include "base/fd.h"
#include "cpustat/proc_thread.h"
#include "cpustat/thread_source.h"
#include "timeline/wait_class.h"

namespace cprof::cpustat {
namespace {

using profile::WaitClass;

constexpr uint64_t kLeastLookNs = 20'000'000, kCostFactor = 50;

struct Followed {
  ThreadSums sums;                // with what it was when first seen taken off
  ThreadSums first;
  WaitTimes looks{};              // since the last read: how often it was seen in a wait of this class
  uint64_t first_ns = 0, told_ns = 0;  // until when its time is shared out
  uint64_t round = 0;
};

class ProcSource final : public ThreadSource {
 public:
  ProcSource(Target target, std::string proc) : target_(std::move(target)), proc_(std::move(proc)) {}

  Result<void> start() override {
    std::vector<ThreadSums> ignored;
    auto listed = read(ignored);
    if (!listed) return std::unexpected(listed.error());
    return {};
  }
  Result<uint64_t> read(std::vector<ThreadSums>& into) override;
  uint64_t look_after_ns() const override { return look_after_ns_; }
  void look() override;
  bool counts_wakeups() const override { return false; }
  Diagnostics diagnostics() const override { return {}; }

 private:
  std::vector<event::Task> tasks();
  void read_thread(const event::Task& task, uint64_t time_ns);
  void share_out(Followed& thread, uint64_t time_ns, uint64_t cpu_ns, uint64_t runnable_ns);
  WaitClass class_of(const event::Task& task, char state);

  Target target_;
  std::string proc_;
  std::unordered_map<int32_t, Followed> threads_;
  std::unordered_map<std::string, WaitClass> classes_;  // by kernel function
  uint64_t round_ = 0, look_after_ns_ = kLeastLookNs;
};

std::vector<event::Task> ProcSource::tasks() {
  TaskList list(proc_);
  if (target_.whole_machine) return list.all();
  if (!target_.cgroup.empty()) return list.of_cgroup(target_.cgroup);
  if (!target_.tids.empty()) return list.of_threads(target_.tids);
  return target_.inherit ? list.of_families(target_.pids) : list.of_processes(target_.pids);
}

WaitClass ProcSource::class_of(const event::Task& task, char state) {
  const std::string function = read_wait_channel(proc_, task);
  if (function.empty()) return state == 'D' ? WaitClass::kIo : WaitClass::kOther;
  auto [known, is_new] = classes_.try_emplace(function);
  if (is_new) {
    const std::string_view name = function;
    known->second = timeline::wait_class_of({&name, 1});
  }
  return known->second;
}

void ProcSource::look() {
  const uint64_t start_ns = monotonic_ns();
  for (auto& [tid, thread] : threads_) {
    const event::Task task{thread.sums.pid, tid};
    const auto stat = read_proc_stat(proc_, task);
    if (!stat || stat->state == 'R') continue;
    thread.looks[static_cast<size_t>(class_of(task, stat->state))]++;
  }
  look_after_ns_ = std::max(kLeastLookNs, (monotonic_ns() - start_ns) * kCostFactor);
}

// The time since it was last told, less what it ran and was runnable, goes to the classes as often as they were seen.
void ProcSource::share_out(Followed& thread, uint64_t time_ns, uint64_t cpu_ns, uint64_t runnable_ns) {
  ThreadSums& sums = thread.sums;
  const uint64_t busy = (cpu_ns - std::min(cpu_ns, sums.cpu_ns)) + (runnable_ns - std::min(runnable_ns, sums.runnable_ns));
  const uint64_t elapsed = time_ns - thread.told_ns;
  const uint64_t waited = elapsed > busy ? elapsed - busy : 0;
  uint64_t looks = 0;
  for (uint64_t count : thread.looks) looks += count;
  if (looks == 0) sums.waits_ns[static_cast<size_t>(WaitClass::kOther)] += waited;
  else
    for (size_t i = 0; i < kWaitClasses; i++) sums.waits_ns[i] += waited * thread.looks[i] / looks;
  thread.looks = {};
  thread.told_ns = time_ns;
}

void ProcSource::read_thread(const event::Task& task, uint64_t time_ns) {
  const auto stat = read_proc_stat(proc_, task);
  if (!stat) return;
  Followed& thread = threads_[task.tid];
  if (thread.first_ns == 0 || thread.sums.start_ns != stat->start_ns) {
    const bool is_new_thread = round_ > 1;  // all of its life lies in the run
    thread = {};
    thread.first_ns = thread.told_ns = time_ns;
    thread.sums.pid = task.pid;
    thread.sums.tid = task.tid;
    thread.sums.start_ns = stat->start_ns;
    thread.sums.is_kernel = stat->is_kernel;
    if (!is_new_thread) read_proc_accounts(proc_, task, *stat, thread.first);
  }
  thread.round = round_;
  thread.sums.comm = stat->comm;
  if (stat->state != 'R') thread.looks[static_cast<size_t>(class_of(task, stat->state))]++;
  ThreadSums now;
  read_proc_accounts(proc_, task, *stat, now);
  auto since_first = [](uint64_t value, uint64_t first) { return value > first ? value - first : 0; };
  const uint64_t cpu_ns = since_first(now.cpu_ns, thread.first.cpu_ns);
  const uint64_t runnable_ns = since_first(now.runnable_ns, thread.first.runnable_ns);
  share_out(thread, time_ns, cpu_ns, runnable_ns);
  thread.sums.cpu_ns = cpu_ns;
  thread.sums.runnable_ns = runnable_ns;
  thread.sums.user_ns = since_first(now.user_ns, thread.first.user_ns);
  thread.sums.system_ns = since_first(now.system_ns, thread.first.system_ns);
  thread.sums.voluntary = since_first(now.voluntary, thread.first.voluntary);
  thread.sums.involuntary = since_first(now.involuntary, thread.first.involuntary);
  thread.sums.migrations = since_first(now.migrations, thread.first.migrations);
}

Result<uint64_t> ProcSource::read(std::vector<ThreadSums>& into) {
  const uint64_t time_ns = monotonic_ns();
  round_++;
  for (const event::Task& task : tasks()) read_thread(task, time_ns);
  into.clear();
  for (auto it = threads_.begin(); it != threads_.end();) {
    const bool is_gone = it->second.round != round_;
    it->second.sums.has_ended = is_gone;
    into.push_back(it->second.sums);
    it = is_gone ? threads_.erase(it) : std::next(it);
  }
  return time_ns;
}

}  // namespace

std::unique_ptr<ThreadSource> make_proc_source(const Target& target, std::string proc) {
  return std::make_unique<ProcSource>(target, std::move(proc));
}

}  // namespace cprof::cpustat
