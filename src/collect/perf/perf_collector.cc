// Setting up and ending a recording; reading the rings is in perf_drain.cc.
//
// Order of opening, so that nothing falls between: a command is forked and waits; events are opened (for what runs
// already, listing its threads again until none is new: later ones are inherited); the sink's begin(); /proc describes
// what runs, dated at the start, while the side band already collects changes in the rings. start() turns sampling on or
// lets the command exec.
#include "collect/perf/perf_collector.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>

#include "base/clock.h"
#include "base/file.h"
#include "collect/perf/cpu_list.h"
#include "collect/perf/running_tasks.h"

namespace cprof::collect {
namespace {

constexpr uint32_t kFirstStackBytes = 16384;
// Rings of less than 2 MiB, for want of the right to lock memory, hold few large snapshots: begin small.
constexpr uint32_t kFirstStackBytesInSmallRings = 4096;
constexpr size_t kSmallRingPages = 512;
constexpr uint64_t kDefaultRate = 999;
constexpr int kMostListings = 10;

// One descriptor per event: all that the hard limit allows. The command was forked before, so it keeps its own limit.
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string describe_target(const PerfTarget& target) {
  auto numbers = [](const std::vector<int32_t>& ids) {
    std::string text;
    for (int32_t id : ids) text += fmt::format("{}{}", text.empty() ? "" : ",", id);
    return text;
  };
  if (!target.command.empty()) return join(target.command);
  if (!target.pids.empty()) return "pid " + numbers(target.pids);
  if (!target.tids.empty()) return "tid " + numbers(target.tids);
  if (!target.cgroup.empty()) return "cgroup " + target.cgroup;
  return "all CPUs";
}

}  // namespace

PerfCollector::PerfCollector(PerfOptions options, PerfApi& api) : options_(std::move(options)), api_(api) {}

PerfCollector::~PerfCollector() = default;

Result<std::unique_ptr<PerfCollector>> PerfCollector::make(PerfOptions options, PerfApi& api) {
  const PerfTarget& target = options.target;
  int kinds = !target.command.empty() + !target.pids.empty() + !target.tids.empty() + target.all_cpus + !target.cgroup.empty();
  if (kinds != 1) return fail("name exactly one target: a command, -p, -t, -a or --cgroup", EINVAL);
  if (options.stack_bytes && usable_stack_bytes(options.stack_bytes) < options.stack_bytes)
    return fail("--stack-size: at most 65528 bytes", EINVAL);
  std::unique_ptr<PerfCollector> collector(new PerfCollector(std::move(options), api));
  TRY(collector->resolve_events());
  return collector;
}

Result<void> PerfCollector::resolve_events() {
  if (options_.freq_hz == 0 && options_.period == 0) options_.freq_hz = kDefaultRate;
  auto text = read_text_file(options_.max_rate_path, 64);
  uint64_t most = text ? strtoull(text->c_str(), nullptr, 10) : 0;
  if (options_.freq_hz == kMaxFrequency) {
    options_.freq_hz = most ? most : kDefaultRate;
  } else if (most && options_.period == 0 && options_.freq_hz > most) {
    diagnostics_.add("frequency_lowered", Severity::kNotice,
                     "the frequency is more than kernel.perf_event_max_sample_rate allows and was lowered to it", 1,
                     fmt::format("{} -> {} Hz", options_.freq_hz, most));
    options_.freq_hz = most;
  }
  std::vector<std::string> names = options_.events;
  if (names.empty()) names.push_back("cycles");
  for (size_t i = 0; i < names.size(); i++) {
    for (EventSpec& spec : TRY(parse_events(names[i], static_cast<int>(i), options_.tracefs))) {
      set_rate(spec, options_.period, options_.freq_hz);
      specs_.push_back(std::move(spec));
    }
  }
  return {};
}

Result<void> PerfCollector::choose_tasks() {
  PerfTarget& target = options_.target;
  wide_ = target.all_cpus || !target.cgroup.empty();
  groups_ = event::GroupDeltas(wide_);
  if (!target.command.empty()) {
    command_.emplace(TRY(Command::fork(target.command)));
    tasks_ = {{command_->pid(), command_->pid()}};
  } else if (!target.pids.empty()) {
    tasks_ = TRY(threads_of(target.pids));
  } else if (!target.tids.empty()) {
    tasks_ = TRY(tasks_of(target.tids));
  }
  for (const event::Task& task : tasks_) live_[task.tid] = task.pid;
  std::vector<int> online = TRY(read_online_cpus(options_.online_cpus_path, options_.stat_path));
  if (target.cpus.empty()) {
    cpus_ = online;
    return {};
  }
  cpus_ = target.cpus;
  std::ranges::sort(cpus_);
  for (int cpu : cpus_)
    if (!std::ranges::binary_search(online, cpu)) return fail(fmt::format("-C {}: this CPU is not online", cpu), ENODEV);
  return {};
}

// Threads that appear between the listing and the opening are nobody's children yet: list until nothing is new.
Result<void> PerfCollector::open_until_stable() {
  std::vector<int32_t> tids = live_tids();
  TRY(events_->open(cpus_, tids));
  for (int round = 0; !options_.target.pids.empty() && round < kMostListings; round++) {
    auto now = threads_of(options_.target.pids);
    if (!now) break;  // a process ended meanwhile
    std::vector<int32_t> fresh;
    for (const event::Task& task : *now)
      if (live_.emplace(task.tid, task.pid).second) fresh.push_back(task.tid);
    if (fresh.empty()) break;
    TRY(events_->add_tasks(fresh));
  }
  return {};
}

Result<void> PerfCollector::open(event::EventSink& sink) {
  sink_ = &sink;
  cpu_at_open_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  TRY(choose_tasks());
  raise_open_files();
  events_ = std::make_unique<EventSet>(api_, options_, cpus_.size(), decoder_, groups_, diagnostics_);
  stack_bytes_ = wanted_stack_bytes_ = usable_stack_bytes(options_.stack_bytes ? options_.stack_bytes : kFirstStackBytes);
  events_->choices() = {.stack_mode = options_.stack_mode,
                        .stack_bytes = stack_bytes_,
                        .kernel = options_.kernel,
                        .inherit = options_.inherit && !wide_,
                        .enable_on_exec = command_.has_value(),
                        .switches = options_.switches,
                        .kernel_symbols = wide_ && options_.kernel};
  TRY(events_->probe(specs_));
  if (options_.off_cpu) events_->probe_off_cpu(specs_);
  start_ns_ = monotonic_ns();
  TRY(open_until_stable());
  TRY(fit_stacks_to_rings());
  TRY(watch_targets());
  event::SessionInfo info = session_info();
  TRY(sink.begin(info));
  return describe_running();
}

Result<void> PerfCollector::fit_stacks_to_rings() {
  bool is_ours_to_choose = options_.stack_mode == StackMode::kDwarf && !options_.stack_bytes && !options_.ring_pages;
  has_small_rings_ = events_->ring_pages() < kSmallRingPages;
  if (!is_ours_to_choose || !has_small_rings_) return {};
  TRY(events_->reopen_samplers(kFirstStackBytesInSmallRings, live_tids()));
  stack_bytes_ = wanted_stack_bytes_ = kFirstStackBytesInSmallRings;
  return {};
}

event::SessionInfo PerfCollector::session_info() const {
  event::SessionInfo info;
#if defined(__aarch64__)
  info.arch = event::Arch::kAarch64;
#endif
  for (const EventSpec& spec : specs_) info.metrics.push_back(spec.metric);
  info.command = describe_target(options_.target);
  utsname names{};
  uname(&names);
  info.hostname = names.nodename;
  info.kernel_release = names.release;
  info.cpus_online = static_cast<uint32_t>(cpus_.size());
  info.start_ns = start_ns_;
  uint64_t realtime = clock_ns(CLOCK_REALTIME), monotonic = monotonic_ns();
  info.start_realtime_ns = realtime - (monotonic - start_ns_);
  info.has_switches = options_.switches;
  info.has_off_cpu = options_.off_cpu;
  bool allowed = events_->choices().kernel;
  info.has_kernel_stacks = allowed && options_.stack_mode != StackMode::kNone;
  if (!options_.kernel) info.kernel_stacks_missing = "switched off by --no-kernel";
  else if (!allowed)
    info.kernel_stacks_missing = fmt::format(
        "kernel.perf_event_paranoid is {} and cprof lacks CAP_PERFMON; run as root or: sysctl kernel.perf_event_paranoid=1",
        paranoid_level(options_));
  else if (!info.has_kernel_stacks) info.kernel_stacks_missing = "no stacks were asked for";
  return info;
}

Result<void> PerfCollector::describe_running() {
  if (command_) return {};
  if (wide_) return describe_all_processes(start_ns_, *sink_);
  std::vector<int32_t> pids;
  for (const auto& [tid, pid] : live_) pids.push_back(pid);
  std::ranges::sort(pids);
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  for (int32_t pid : pids) TRY(describe_process(pid, start_ns_, *sink_));
  return {};
}

Result<void> PerfCollector::watch_targets() {
  for (int32_t pid : options_.target.pids) {
    Fd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (fd) pidfds_.push_back(std::move(fd));
  }
  return {};
}

Result<void> PerfCollector::start() {
  uint64_t now = monotonic_ns();
  last_pass_ns_ = start_ns_;
  last_period_ns_ = now;
  sampling_at_ns_ = now + options_.delay_ns;
  sampling_ = options_.delay_ns == 0;
  if (sampling_ && !command_) events_->enable_samplers();
  Result<void> released = command_ ? command_->release() : Result<void>{};
  events_->set_started();
  return released;
}

bool PerfCollector::target_ended() {
  if (wide_) return false;
  if (command_) return command_->has_ended();
  if (!options_.target.tids.empty())
    return std::ranges::all_of(options_.target.tids, [](int32_t tid) { return syscall(SYS_tkill, tid, 0) != 0 && errno == ESRCH; });
  // Kernels before 5.3 have no pidfd: then the signal 0 tells, though not for a zombie.
  if (pidfds_.empty())
    return std::ranges::all_of(options_.target.pids, [](int32_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; });
  return std::ranges::all_of(pidfds_, [](const Fd& fd) {
    pollfd ask{fd.get(), POLLIN, 0};
    return ::poll(&ask, 1, 0) == 1;
  });
}

void PerfCollector::note_truncated(uint64_t truncated, uint64_t total) {
  bool nothing_lost = lost_records_ == lost_noted_;
  lost_noted_ = lost_records_;
  if (options_.stack_bytes || options_.stack_mode != StackMode::kDwarf || !nothing_lost) return;
  if (total == 0 || truncated * 1000 <= total) return;
  hurry();
  wanted_stack_bytes_ = has_small_rings_ ? std::min(stack_bytes_ * 2, event::kMaxStackBytes) : event::kMaxStackBytes;
}

Result<void> PerfCollector::apply_switch_period() {
  const uint64_t wanted = switch_rate_.wanted_period();
  if (wanted == switch_period_ || keeps_switch_period_) return {};
  events_->thin_switch_stacks(wanted);
  auto reopened = events_->reopen_samplers(stack_bytes_, live_tids());
  if (!reopened) {
    events_->thin_switch_stacks(switch_period_);
    keeps_switch_period_ = true;
    diagnostics_.add("switch_period_not_changed", Severity::kNotice,
                     "the rate of switch stacks stays, because the events could not be opened again", 1,
                     reopened.error().message);
    return {};
  }
  switch_period_ = wanted;
  if (sampling_) events_->enable_samplers();
  return {};
}

Result<void> PerfCollector::apply_stack_change() {
  if (wanted_stack_bytes_ == stack_bytes_) return {};
  auto reopened = events_->reopen_samplers(wanted_stack_bytes_, live_tids());
  if (reopened) {
    diagnostics_.add("stack_size_raised", Severity::kInfo, "stack snapshots were enlarged because some were cut", 1,
                     fmt::format("{} -> {} bytes", stack_bytes_, wanted_stack_bytes_));
    stack_bytes_ = wanted_stack_bytes_;
    if (!sampling_) return {};
    events_->enable_samplers();
    return {};
  }
  diagnostics_.add("stack_size_not_raised", Severity::kNotice,
                   "stack snapshots stay small because larger ones could not be opened; use --stack-size", 1,
                   reopened.error().message);
  wanted_stack_bytes_ = stack_bytes_;
  options_.stack_bytes = stack_bytes_;  // not again
  return {};
}

std::vector<int32_t> PerfCollector::live_tids() const {
  if (wide_) return {-1};
  std::vector<int32_t> tids;
  for (const auto& [tid, pid] : live_) tids.push_back(tid);
  std::ranges::sort(tids);
  return tids;
}

Result<void> PerfCollector::close() {
  if (closed_ || !sink_) return {};
  closed_ = true;
  events_->disable_all();
  Result<void> drained;
  if (auto passed = pass(true); !passed) drained = std::unexpected(passed.error());
  if (command_) command_->has_ended();
  uint64_t end = monotonic_ns();
  if (drained) drained = tell_untold_losses(end);
  Result<void> finished = sink_->finish(end);
  return drained ? finished : drained;
}

std::optional<int32_t> PerfCollector::command_pid() const {
  if (!command_) return std::nullopt;
  return command_->pid();
}

uint64_t PerfCollector::cpu_ns() const { return clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_at_open_ns_; }

}  // namespace cprof::collect
