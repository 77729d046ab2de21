// The sums of the BPF programs, brought up to the moment of reading: what a thread is in the middle of is added here.
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "collect/bpf/cpustat_object.h"
#include "collect/bpf/support.h"
#include "cpustat/thread_source.h"
#include "object/kernel_symbols.h"
#include "timeline/wait_class.h"

namespace cprof::cpustat {
namespace {

using collect::CpustatObject;
using profile::WaitClass;

static_assert(kWaitClasses <= CPUSTAT_UNKNOWN_CLASS);

constexpr uint64_t kLeastThreads = 8192, kMostThreads = 1 << 20;

uint64_t between(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

// "0.20 0.18 0.12 1/80 11206": the number behind the slash.
uint32_t room_for_threads() {
  uint64_t threads = 0;
  const std::string text = read_text_file("/proc/loadavg", 4096).value_or("");
  if (const size_t slash = text.find('/'); slash != text.npos) threads = strtoull(text.c_str() + slash + 1, nullptr, 10);
  return static_cast<uint32_t>(std::clamp(threads * 4, kLeastThreads, kMostThreads));
}

// Classes by the kernel's own names. Each stack is looked at once.
class StackClasses {
 public:
  WaitClass class_of(std::span<const uint64_t> innermost_first) {
    if (!symbols_) load();
    names_.clear();
    for (size_t i = innermost_first.size(); i-- > 0;)
      if (auto symbol = symbols_->find(innermost_first[i] - 1)) names_.push_back(symbol->name);
    return timeline::wait_class_of(names_);
  }
  const std::string& missing() const { return missing_; }

 private:
  void load() {
    auto loaded = object::KernelSymbols::load();
    if (!loaded) missing_ = loaded.error().message;
    else if (loaded->hidden()) missing_ = "/proc/kallsyms shows no addresses; run as root or: sudo sysctl kernel.kptr_restrict=1";
    symbols_ = loaded ? std::move(*loaded) : object::KernelSymbols::parse("");
  }

  std::optional<object::KernelSymbols> symbols_;
  std::vector<std::string_view> names_;
  std::string missing_;
};

class BpfSource final : public ThreadSource {
 public:
  BpfSource(std::unique_ptr<CpustatObject> object, Fd cgroup) : object_(std::move(object)), cgroup_(std::move(cgroup)) {}

  Result<void> start() override {
    TRY(object_->start());
    learn_classes();  // the kernel's symbols are read for it: not within an interval
    return {};
  }
  Result<uint64_t> read(std::vector<ThreadSums>& into) override;
  Diagnostics diagnostics() const override;

 private:
  Result<void> learn_classes();
  WaitClass class_of(uint64_t stack) const;
  ThreadSums sums_of(const cpustat_thread& thread, uint64_t time_ns) const;
  void add_open_state(ThreadSums& sums, const cpustat_thread& thread, uint64_t time_ns) const;
  void forget_ended(uint64_t time_ns);

  std::unique_ptr<CpustatObject> object_;
  Fd cgroup_;
  StackClasses stack_classes_;
  std::unordered_map<uint64_t, WaitClass> classes_;        // by stack
  std::unordered_map<uint32_t, WaitTimes> extra_;          // by tid: waits that had no class when they ended
  std::vector<cpustat_thread> threads_;
  std::vector<uint32_t> gone_;
};

Result<void> BpfSource::learn_classes() {
  TRY(object_->take_new_stacks([&](uint64_t id, std::span<const uint64_t> addresses) {
    const auto [known, is_new] = classes_.try_emplace(id, WaitClass::kOther);
    if (is_new) known->second = stack_classes_.class_of(addresses);
    (void)object_->tell_class(id, static_cast<uint32_t>(known->second));
  }));
  return object_->take_pending([&](const cpustat_pending_key& wait, uint64_t ns) {
    extra_[wait.tid][static_cast<size_t>(class_of(wait.stack))] += ns;
  });
}

WaitClass BpfSource::class_of(uint64_t stack) const {
  const auto known = classes_.find(stack);
  return known == classes_.end() ? WaitClass::kOther : known->second;
}

Result<uint64_t> BpfSource::read(std::vector<ThreadSums>& into) {
  const uint64_t time_ns = monotonic_ns();
  TRY(object_->read_threads(threads_));
  TRY(learn_classes());
  into.clear();
  into.reserve(threads_.size());
  for (const cpustat_thread& thread : threads_) into.push_back(sums_of(thread, time_ns));
  forget_ended(time_ns);
  return time_ns;
}

// One that has just ended has still to leave its CPU.
void BpfSource::forget_ended(uint64_t time_ns) {
  constexpr uint64_t kPatienceNs = 50'000'000;
  gone_.clear();
  for (const cpustat_thread& thread : threads_)
    if (thread.ended_ns && between(thread.ended_ns, time_ns) > kPatienceNs) {
      gone_.push_back(thread.tid);
      extra_.erase(thread.tid);
    }
  object_->forget(gone_);
}

ThreadSums BpfSource::sums_of(const cpustat_thread& thread, uint64_t time_ns) const {
  ThreadSums sums;
  sums.pid = static_cast<int32_t>(thread.pid);
  sums.tid = static_cast<int32_t>(thread.tid);
  sums.start_ns = thread.start_ns;
  sums.comm.assign(thread.comm, strnlen(thread.comm, sizeof thread.comm));
  sums.has_ended = thread.ended_ns != 0;
  sums.is_kernel = thread.is_kernel != 0;
  sums.cpu_ns = between(thread.first.cpu_ns, thread.now.cpu_ns);
  sums.user_ns = between(thread.first.user_ns, thread.now.user_ns);
  sums.system_ns = between(thread.first.system_ns, thread.now.system_ns);
  sums.voluntary = between(thread.first.voluntary, thread.now.voluntary);
  sums.involuntary = between(thread.first.involuntary, thread.now.involuntary);
  sums.migrations = between(thread.first.migrations, thread.now.migrations);
  sums.wakeups = thread.wakeups;
  sums.runnable_ns = thread.runnable_ns;
  std::copy_n(thread.waits_ns, kWaitClasses, sums.waits_ns.begin());
  for (size_t i = kWaitClasses; i < CPUSTAT_CLASSES; i++)
    sums.waits_ns[static_cast<size_t>(WaitClass::kOther)] += thread.waits_ns[i];
  if (const auto extra = extra_.find(thread.tid); extra != extra_.end())
    for (size_t i = 0; i < kWaitClasses; i++) sums.waits_ns[i] += extra->second[i];
  if (!thread.ended_ns) add_open_state(sums, thread, time_ns);
  return sums;
}

void BpfSource::add_open_state(ThreadSums& sums, const cpustat_thread& thread, uint64_t time_ns) const {
  if (thread.state == CPUSTAT_RUNNABLE) sums.runnable_ns += between(thread.since_ns, time_ns);
  if (thread.state != CPUSTAT_WAITING) return;
  const uint64_t woken_ns = thread.woken_ns ? std::min(thread.woken_ns, time_ns) : time_ns;
  sums.waits_ns[static_cast<size_t>(class_of(thread.stack))] += between(thread.since_ns, woken_ns);
  sums.runnable_ns += between(woken_ns, time_ns);
}

Diagnostics BpfSource::diagnostics() const {
  Diagnostics losses;
  const auto counters = object_->counters();
  auto tell = [&](uint32_t which, const char* name, Severity severity, const char* words) {
    if (counters[which]) losses.add(name, severity, words, counters[which]);
  };
  tell(CPUSTAT_THREADS_FULL, "cpustat_threads_full", Severity::kDataLoss,
       "threads not counted because too many ended within an interval; take a shorter --interval");
  tell(CPUSTAT_TARGETS_FULL, "cpustat_targets_full", Severity::kDataLoss, "processes not followed because there were too many");
  tell(CPUSTAT_UNTRACED_SWITCHES, "untraced_switches", Severity::kInfo,
       "switches that the kernel did not report; when they were is worked out from the thread's CPU time");
  tell(CPUSTAT_WAITS_WITHOUT_STACK, "waits_without_stack", Severity::kInfo, "waits without a kernel stack, counted as other");
  if (!stack_classes_.missing().empty())
    losses.add("kernel_names_missing", Severity::kNotice, "waits cannot be told apart, all count as other: " + stack_classes_.missing());
  return losses;
}

cpustat_filter filter_of(const Target& target) {
  if (target.whole_machine) return CPUSTAT_ALL;
  if (!target.cgroup.empty()) return CPUSTAT_CGROUP;
  return target.tids.empty() ? CPUSTAT_PROCESSES : CPUSTAT_THREADS;
}

}  // namespace

Result<std::unique_ptr<ThreadSource>> make_bpf_source(const Target& target) {
  if (auto obstacle = collect::find_bpf_obstacle(collect::read_bpf_machine())) return fail("bpf: " + obstacle->text(), ENOTSUP);
  const cpustat_settings settings{.filter = static_cast<uint32_t>(filter_of(target)), .inherit = target.inherit};
  auto object = TRY(CpustatObject::load(settings, room_for_threads()));
  for (int32_t pid : target.pids) TRY(object->add_target(static_cast<uint32_t>(pid)));
  for (int32_t tid : target.tids) TRY(object->add_target(static_cast<uint32_t>(tid)));
  Fd cgroup;
  if (!target.cgroup.empty()) {
    const std::string path = target.cgroup.starts_with('/') ? target.cgroup : "/sys/fs/cgroup/" + target.cgroup;
    cgroup = Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup) return fail_errno("--cgroup " + path);
    TRY(object->set_cgroup(cgroup.get()));
  }
  return std::make_unique<BpfSource>(std::move(object), std::move(cgroup));
}

}  // namespace cprof::cpustat
