// Opening events. An inherited event cannot be mapped unless it is bound to a CPU, so a task is opened once per CPU, as
// the kernel demands; all events of a CPU write into the ring of the first. What may fail and still be right: a task
// that has ended (ESRCH), a CPU that went away (ENODEV). Everything else is an error with its advice.
#include "collect/perf/event_set.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "base/file.h"

namespace cprof::collect {
namespace {

constexpr size_t kFewestPages = 2;
// Of 16 KiB stacks at 999 Hz, 8 MiB hold half a second: the time to compile the unwind tables of a large library. Where
// CPUs are many, 256 MiB in all and 2 MiB each bound it. Without rights to lock so much, half is tried, and half of that.
constexpr size_t kSnapshotPages = 2048, kFewestSnapshotPages = 512, kAllSnapshotPages = 65536;
constexpr uint64_t kFallbackRate = 999;
constexpr size_t kChainPages = 128;     // 512 KiB: what kernel.perf_event_mlock_kb lets anyone have

bool is_missing_counter(int error_number) {
  return error_number == ENOENT || error_number == EOPNOTSUPP || error_number == ENODEV || error_number == EINVAL;
}
bool is_forbidden(int error_number) { return error_number == EACCES || error_number == EPERM; }

size_t power_of_two_at_most(size_t n) {
  size_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

}  // namespace

EventSet::EventSet(PerfApi& api, const PerfOptions& options, size_t cpus, event::RecordDecoder& decoder,
                   event::GroupDeltas& groups, Diagnostics& diagnostics)
    : api_(api), options_(options), decoder_(decoder), groups_(groups), diagnostics_(diagnostics) {
  size_t wanted = options.ring_pages ? options.ring_pages
                  : options.stack_mode != StackMode::kDwarf
                      ? kChainPages
                      : std::clamp(kAllSnapshotPages / std::max<size_t>(cpus, 1), kFewestSnapshotPages, kSnapshotPages);
  pages_ = std::max(kFewestPages, power_of_two_at_most(wanted));
}

// 0, or why not. On ourselves, disabled, closed at once.
int EventSet::open_on_self(perf_event_attr attr, bool inherit) {
  attr.disabled = 1;
  attr.enable_on_exec = 0;
  attr.inherit = inherit;
  int fd = api_.open(attr, 0, -1, -1, 0);
  if (fd < 0) return -fd;
  Fd closed_at_once(fd);
  return 0;
}

// Tried on ourselves: whether an event exists does not depend on the target. Kernel samples are given up for all events
// when one is refused with them and allowed without.
Result<void> EventSet::probe_one(EventSpec& spec) {
  auto open_probe = [&](bool kernel) {
    AttrChoices choices = choices_;
    choices.kernel = kernel;
    return open_on_self(sampling_attr(spec, choices));
  };
  int error = open_probe(choices_.kernel);
  if (is_forbidden(error) && choices_.kernel) {
    int without = open_probe(false);
    if (!is_forbidden(without)) {
      choices_.kernel = false;
      error = without;
    }
  }
  if (error == 0) return check_inherited_group(spec);
  bool is_cycles = spec.metric.type == PERF_TYPE_HARDWARE && spec.metric.config == PERF_COUNT_HW_CPU_CYCLES;
  if (!is_cycles || !is_missing_counter(error)) return std::unexpected(open_error({spec.metric.name, 0, -1}, error, options_));
  EventSpec clock = cpu_clock_spec();
  clock.group = spec.group;
  clock.leads_group = spec.leads_group;
  spec = std::move(clock);
  set_rate(spec, 0, options_.freq_hz ? options_.freq_hz : kFallbackRate);
  diagnostics_.add("cycles_missing", Severity::kNotice,
                   "this machine has no cycles counter; cpu-clock is sampled instead, weights are CPU time");
  if (options_.period)
    diagnostics_.add("count_not_used", Severity::kNotice,
                     "-c counts cycles, which this machine cannot; name an event with -e to count that", 1);
  return {};
}

// Kernels before 6.13 do not read groups in threads that are followed.
Result<void> EventSet::check_inherited_group(const EventSpec& spec) {
  if (!spec.leads_group || !choices_.inherit) return {};
  if (open_on_self(sampling_attr(spec, choices_), true) != EINVAL) return {};
  return fail("-e {...}: this kernel cannot follow new threads and children with a group (6.13 can); add --no-inherit, or -a",
              EINVAL);
}

Result<void> EventSet::probe(std::vector<EventSpec>& specs) {
  AttrChoices with_lost = choices_;
  with_lost.count_lost = true;
  with_lost.kernel = false;
  choices_.count_lost = open_on_self(side_band_attr(with_lost)) == 0;
  std::vector<EventSpec> found;
  for (EventSpec& spec : specs) {
    TRY(probe_one(spec));
    bool twice = std::ranges::any_of(found, [&](const EventSpec& other) { return other.metric.name == spec.metric.name; });
    if (!twice) found.push_back(spec);
  }
  specs_ = specs = std::move(found);
  return {};
}

void EventSet::probe_off_cpu(std::vector<EventSpec>& specs) {
  EventSpec switches = switch_stacks_spec();
  if (int error = open_on_self(attr_for(switches, choices_)))
    diagnostics_.add("off_cpu_stacks_missing", Severity::kNotice,
                     "waits have no stacks and no classes, only their times", 1,
                     open_error({switches.metric.name, 0, -1}, error, options_).message);
  else
    specs.push_back(std::move(switches));
  specs_ = specs;
  probe_wakeups();
}

void EventSet::probe_wakeups() {
  auto say = [this](const std::string& why) {
    diagnostics_.add("wakeups_missing", Severity::kNotice,
                     "wake-ups are not seen: the time that a woken thread waits for a CPU counts as its wait", 1, why);
  };
  auto spec = find_wakeup_spec(options_.tracefs, options_.pid_namespace_path);
  if (!spec) return say(spec.error().message);
  if (int error = open_on_self(attr_for(*spec, choices_)))
    return say(open_error({spec->metric.name, 0, -1}, error, options_).message);
  if (!options_.target.cgroup.empty())
    say("only wake-ups by threads of the cgroup itself reach an event of a cgroup");
  specs_.push_back(std::move(*spec));
}

void EventSet::thin_switch_stacks(uint64_t period) {
  for (EventSpec& spec : specs_)
    if (spec.metric.is_switch_stacks) spec.metric.period = period;
}

// skipped: the task or the CPU is not there any more.
Result<Fd> EventSet::open_event(const perf_event_attr& attr, const OpenAttempt& attempt, bool& skipped, int group) {
  int32_t target = attempt.pid;
  unsigned long flags = 0;
  if (!options_.target.cgroup.empty()) {
    if (!cgroup_) {
      cgroup_ = Fd(::open(options_.target.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!cgroup_) return fail_errno("cgroup " + options_.target.cgroup);
    }
    target = cgroup_.get();
    flags = PERF_FLAG_PID_CGROUP;
  }
  int fd = api_.open(attr, target, attempt.cpu, group, flags);
  if (fd >= 0) return Fd(fd);
  skipped = (fd == -ESRCH && attempt.pid > 0) || fd == -ENODEV;
  if (skipped) return Fd();
  return std::unexpected(open_error(attempt, -fd, options_));
}

void EventSet::note_id(const Fd& event, const perf_event_attr& attr, uint32_t metric, uint16_t woken_tid_offset) {
  uint64_t id = 0;
  int error = api_.control(event.get(), PERF_EVENT_IOC_ID, reinterpret_cast<unsigned long>(&id));
  if (error < 0) return;  // no id: the decoder counts its records as malformed
  event::AttrLayout layout = event::layout_of(attr, metric);
  layout.woken_tid_offset = woken_tid_offset;
  decoder_.add_layout(layout, std::span(&id, 1));
  groups_.add_event(id, metric);
}

Result<Ring> EventSet::map_ring(int fd) {
  for (;;) {
    auto ring = Ring::map(api_, fd, pages_);
    if (ring) return ring;
    int error = ring.error().code;
    if (error != EPERM && error != ENOMEM) return ring;
    if (pages_ <= kFewestPages) return std::unexpected(ring_error(error, cpus_wanted_, pages_, options_));
    pages_ /= 2;
    diagnostics_.add("rings_halved", Severity::kInfo,
                     "ring buffers made smaller to fit the limit of locked memory (kernel.perf_event_mlock_kb, ulimit -l)");
  }
}

Result<void> EventSet::share_ring(const Fd& event, const Fd& owner) {
  int error = api_.control(event.get(), PERF_EVENT_IOC_SET_OUTPUT, static_cast<unsigned long>(owner.get()));
  if (error < 0) return fail_errno("sharing a ring buffer (PERF_EVENT_IOC_SET_OUTPUT)", -error);
  return {};
}

Result<void> EventSet::open_samplers(CpuRing& ring, int32_t tid, std::vector<Fd>& into) {
  if (options_.side_band_only) return {};
  AttrChoices choices = choices_;
  if (options_.delay_ns || started_) choices.enable_on_exec = false;
  int leader = -1;
  for (size_t metric = 0; metric < specs_.size(); metric++) {
    const EventSpec& spec = specs_[metric];
    choices.start_disabled = !started_ || spec.leads_group;
    perf_event_attr attr = attr_for(spec, choices);
    bool skipped = false;
    Fd fd = TRY(open_event(attr, {spec.metric.name, tid, ring.cpu}, skipped, spec.is_read_only() ? leader : -1));
    if (skipped) return {};
    if (!spec.is_read_only()) TRY(share_ring(fd, ring.owner));
    note_id(fd, attr, spec.woken_tid_offset ? event::kNoMetric : static_cast<uint32_t>(metric), spec.woken_tid_offset);
    if (spec.leads_group) leader = fd.get();
    into.push_back(std::move(fd));
    // What joins a group that runs already is not counted: its leader starts after its last member.
    bool is_last = metric + 1 == specs_.size() || !specs_[metric + 1].is_read_only();
    if (started_ && leader >= 0 && is_last) api_.control(leader, PERF_EVENT_IOC_ENABLE, 0);
    if (is_last) leader = -1;
  }
  return {};
}

// False: the task has ended.
Result<bool> EventSet::open_task(CpuRing& ring, int32_t tid) {
  AttrChoices choices = choices_;
  choices.wakeup_bytes = static_cast<uint32_t>(ring.ring.size() / 4);
  perf_event_attr attr = side_band_attr(choices);
  bool skipped = false;
  Fd fd = TRY(open_event(attr, {"side band", tid, ring.cpu}, skipped));
  if (skipped) return false;
  TRY(share_ring(fd, ring.owner));
  note_id(fd, attr, event::kNoMetric);
  ring.side_band.push_back(std::move(fd));
  TRY(open_samplers(ring, tid, ring.samplers));
  return true;
}

// The first task that is still there gives the ring.
Result<void> EventSet::open_cpu(int cpu, std::span<const int32_t> tids) {
  AttrChoices choices = choices_;
  choices.wakeup_bytes = static_cast<uint32_t>(pages_ * 1024);
  perf_event_attr attr = side_band_attr(choices);
  size_t first = 0;
  Fd owner;
  while (first < tids.size() && !owner) {
    bool skipped = false;
    owner = TRY(open_event(attr, {"side band", tids[first], cpu}, skipped));
    if (skipped) first++;
  }
  if (!owner) return {};
  note_id(owner, attr, event::kNoMetric);
  Ring mapped = TRY(map_ring(owner.get()));
  CpuRing ring{.cpu = cpu, .ring = std::move(mapped), .owner = std::move(owner), .side_band = {}, .samplers = {}};
  TRY(open_samplers(ring, tids[first], ring.samplers));
  size_t opened = 1;
  for (int32_t tid : tids.subspan(first + 1)) opened += TRY(open_task(ring, tid)) ? 1 : 0;
  tasks_opened_ = std::max(tasks_opened_, opened);
  rings_.push_back(std::move(ring));
  return {};
}

Result<void> EventSet::open(std::span<const int> cpus, std::span<const int32_t> tids) {
  cpus_wanted_ = cpus.size();
  for (int cpu : cpus) {
    TRY(open_cpu(cpu, tids));
    bool missing = tasks_opened_ > 0 && (rings_.empty() || rings_.back().cpu != cpu);
    if (missing)
      diagnostics_.add("cpus_not_opened", Severity::kNotice, "CPUs that went offline before they could be sampled", 1,
                       fmt::format("CPU {}", cpu));
  }
  return {};
}

Result<void> EventSet::add_tasks(std::span<const int32_t> tids) {
  for (CpuRing& ring : rings_)
    for (int32_t tid : tids) TRY(open_task(ring, tid));
  tasks_opened_ += tids.size();
  return {};
}

// The new events run before the old ones are closed: an instant is rather sampled twice than missed.
Result<void> EventSet::reopen_samplers(uint32_t stack_bytes, std::span<const int32_t> tids) {
  uint32_t before = choices_.stack_bytes;
  choices_.stack_bytes = stack_bytes;
  std::vector<std::vector<Fd>> fresh(rings_.size());
  for (size_t i = 0; i < rings_.size(); i++) {
    if (rings_[i].gone) continue;
    for (int32_t tid : tids) {
      auto opened = open_samplers(rings_[i], tid, fresh[i]);
      if (opened || opened.error().code == ESRCH) continue;  // it ended meanwhile
      choices_.stack_bytes = before;
      return opened;
    }
  }
  for (size_t i = 0; i < rings_.size(); i++) {
    rings_[i].lost_of_closed += lost_of(rings_[i].samplers);
    rings_[i].samplers = std::move(fresh[i]);
  }
  return {};
}

Result<void> EventSet::follow_cpus(std::span<const int> cpus, std::span<const int32_t> tids) {
  for (CpuRing& ring : rings_) {
    if (ring.gone || std::ranges::binary_search(cpus, ring.cpu)) continue;
    ring.gone = true;
    diagnostics_.add("cpus_gone_offline", Severity::kNotice, "CPUs that went offline while they were sampled", 1,
                     fmt::format("CPU {}", ring.cpu));
  }
  for (int cpu : cpus) {
    bool there = std::ranges::any_of(rings_, [&](const CpuRing& ring) { return ring.cpu == cpu && !ring.gone; });
    if (!there) TRY(open_cpu(cpu, tids));
  }
  return {};
}

uint64_t EventSet::lost_of(std::span<const Fd> events) const {
  uint64_t lost = 0;
  for (const Fd& fd : events) lost += api_.lost(fd.get());
  return lost;
}

uint64_t EventSet::lost_untold(const CpuRing& ring) const {
  if (!choices_.count_lost || ring.retired) return 0;
  uint64_t lost = ring.lost_of_closed + lost_of(ring.samplers) + lost_of(ring.side_band) + api_.lost(ring.owner.get());
  return lost > ring.lost_reported ? lost - ring.lost_reported : 0;
}

void EventSet::retire(CpuRing& ring) {
  ring.samplers.clear();
  ring.side_band.clear();
  ring.owner.reset();
  [[maybe_unused]] Ring unmapped = std::move(ring.ring);
  ring.retired = true;
}

void EventSet::set_started() {
  started_ = true;
  choices_.enable_on_exec = false;
}

void EventSet::enable_samplers() {
  for (CpuRing& ring : rings_)
    for (Fd& fd : ring.samplers) api_.control(fd.get(), PERF_EVENT_IOC_ENABLE, 0);
}

void EventSet::disable_all() {
  for (CpuRing& ring : rings_) {
    for (Fd& fd : ring.samplers) api_.control(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
    for (Fd& fd : ring.side_band) api_.control(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
    api_.control(ring.owner.get(), PERF_EVENT_IOC_DISABLE, 0);
  }
}

}  // namespace cprof::collect
