// Order of opening: the programs are loaded, and those that follow forks and execs attached, before the perf backend
// lists the target's threads, so that no thread falls between. Sampling events are per CPU and see everybody; the program
// drops at once what is not the target's.
//
// Order of reading: the rings of the programs are read first, then the side band passes over its own. What the side band
// then holds to be safe to deliver is safe for both, as anything stamped earlier had been written when the rings were read.
#include "collect/bpf/bpf_collector.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <unordered_set>

#include <fmt/format.h>

#include "collect/bpf/support.h"
#include "collect/perf/cpu_list.h"
#include "collect/perf/event_attr.h"
#include "collect/perf/open_error.h"
#include "collect/perf/perf_api.h"
#include "collect/perf/running_tasks.h"
#include "event/perf_record.h"

namespace cprof::collect {
namespace {

constexpr uint64_t kPeriodNs = 1'000'000'000;
constexpr int kMostBackoffMs = 20;
constexpr size_t kBusyRecords = 256;
constexpr int kMostListings = 10;

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A sampled clock interrupts every CPU, busy with the target or not. In a virtual machine each interrupt may take 40 us:
// faster than this, a CPU can be kept from all other work until the kernel's watchdog complains.
constexpr uint64_t kMostHz = 10'000;
constexpr uint64_t kLeastClockPeriodNs = 1'000'000'000 / kMostHz;

void limit_rate(BpfOptions& options, Diagnostics& diagnostics) {
  uint64_t& freq_hz = options.perf.freq_hz;
  if (freq_hz <= kMostHz || options.perf.period) return;
  if (freq_hz != kMaxFrequency)
    diagnostics.add("frequency_lowered_for_bpf", Severity::kNotice,
                    "the frequency was lowered to 10000 Hz, the most for a sampler on every CPU; --backend perf takes more", 1,
                    fmt::format("{} Hz", freq_hz));
  freq_hz = kMostHz;
}

void limit_depth(BpfOptions& options, Diagnostics& diagnostics) {
  if (options.max_depth > SAMPLER_MAX_DEPTH)
    diagnostics.add("max_depth_lowered_for_bpf", Severity::kNotice,
                    "--max-depth was lowered to 4096, the most that the BPF program walks; --backend perf takes more", 1,
                    fmt::format("{}", options.max_depth));
  options.max_depth = std::clamp<uint32_t>(options.max_depth, 1, SAMPLER_MAX_DEPTH);
}

PerfOptions side_band_options(const BpfOptions& options) {
  PerfOptions perf = options.perf;
  perf.side_band_only = true;
  perf.off_cpu = false;
  perf.stack_mode = StackMode::kNone;
  perf.switches = options.perf.switches && !options.off_cpu;
  return perf;
}

}  // namespace

// Holds the events of a pass until the programs have been told what they mean for unwinding: what the sink does with them
// may take long.
class BpfCollector::SideBand : public event::EventSink {
 public:
  explicit SideBand(BpfCollector& owner) : owner_(owner) {}

  Result<void> begin(const event::SessionInfo& side) override {
    event::SessionInfo info = side;
    const BpfOptions& options = owner_.options_;
    info.has_off_cpu = options.off_cpu;
    info.has_switches = side.has_switches || options.off_cpu;
    info.has_kernel_stacks = owner_.side_->may_sample_kernel() && options.perf.stack_mode != StackMode::kNone;
    if (info.has_kernel_stacks) info.kernel_stacks_missing.clear();
    return owner_.sink_->begin(info);
  }
  Result<void> on_event(const event::Event& event) override {
    held_.push_back(event);
    owner_.processes_->apply(event);
    const auto* mmap = std::get_if<event::Mmap>(&event);
    if (mmap) keep_views(*mmap);
    else if (const auto* comm = std::get_if<event::Comm>(&event)) std::get<event::Comm>(held_.back()).name = keep(comm->name);
    return {};
  }
  Result<void> on_round(uint64_t time_ns) override {
    owner_.processes_->publish(time_ns);
    TRY(pass_on());
    TRY(owner_.deliver(time_ns));
    return owner_.sink_->on_round(time_ns);
  }
  Result<void> finish(uint64_t end_ns) override {
    TRY(pass_on());
    TRY(owner_.deliver(UINT64_MAX));
    for (int map = 0; map < 2; map++) TRY(owner_.deliver_counts(end_ns));
    return owner_.sink_->finish(end_ns);
  }

 private:
  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }
  void keep_views(const event::Mmap& mmap) {
    auto& held = std::get<event::Mmap>(held_.back());
    held.path = keep(mmap.path);
    std::string_view build_id(reinterpret_cast<const char*>(mmap.build_id.data()), mmap.build_id.size());
    held.build_id = std::as_bytes(std::span(keep(build_id)));
  }
  Result<void> pass_on() {
    Result<void> passed;
    for (const event::Event& event : held_) {
      passed = owner_.deliver(event::time_of(event));
      if (passed) passed = owner_.sink_->on_event(event);
      if (!passed) break;
    }
    held_.clear();
    texts_.clear();
    return passed;
  }

  BpfCollector& owner_;
  std::vector<event::Event> held_;
  std::deque<std::string> texts_;  // what held events view
};

BpfCollector::BpfCollector(BpfOptions options, std::unique_ptr<PerfCollector> side)
    : options_(std::move(options)), side_(std::move(side)), side_band_(std::make_unique<SideBand>(*this)) {}

BpfCollector::~BpfCollector() = default;

Result<std::unique_ptr<BpfCollector>> BpfCollector::make(BpfOptions options) {
  if (auto obstacle = find_bpf_obstacle(read_bpf_machine())) return fail("--backend bpf: " + obstacle->text(), ENOTSUP);
  Diagnostics limits;
  limit_depth(options, limits);
  limit_rate(options, limits);
  auto side = TRY(PerfCollector::make(side_band_options(options)));
  for (const EventSpec& spec : side->events())
    if (spec.group >= 0) return fail("not supported: -e {...} with --backend bpf; use --backend perf", ENOTSUP);
  std::unique_ptr<BpfCollector> collector(new BpfCollector(std::move(options), std::move(side)));
  collector->diagnostics_.merge(limits);
  TRY(collector->load());
  return collector;
}

sampler_settings BpfCollector::settings() const {
  const PerfOptions& perf = options_.perf;
  sampler_settings settings{};
  settings.filter = perf.target.all_cpus ? SAMPLER_ALL : perf.target.cgroup.empty() ? SAMPLER_TASKS : SAMPLER_CGROUP;
  settings.max_depth = options_.max_depth;
  settings.metric = side_->events().size() > 1 ? SAMPLER_METRIC_BY_COOKIE : 0;
  settings.kernel_stacks = perf.kernel && perf.stack_mode != StackMode::kNone;
  settings.user_stacks = perf.stack_mode == StackMode::kDwarf          ? SAMPLER_USER_TABLES
                         : perf.stack_mode == StackMode::kFramePointer ? SAMPLER_USER_FRAME_POINTERS
                                                                       : SAMPLER_USER_NONE;
  settings.inherit = perf.inherit;
  settings.snapshots = settings.learn = 1;
  settings.let_through = static_cast<bool>(options_.perf_tap);
  settings.count_only = options_.count_only;
  settings.off_cpu = options_.off_cpu;
  settings.some_cpus = !perf.target.cpus.empty();
  for (int cpu : perf.target.cpus)
    if (cpu < SAMPLER_MAX_CPUS) settings.cpus[cpu / 64] |= uint64_t{1} << (cpu % 64);
  return settings;
}

Result<void> BpfCollector::load() {
  const PerfTarget& target = options_.perf.target;
  wide_ = target.all_cpus || !target.cgroup.empty();
  object_ = TRY(SamplerObject::load(settings()));
  modules_ = std::make_unique<ModuleBook>(*object_, diagnostics_);
  processes_ = std::make_unique<ProcessBook>(*object_, *modules_, !wide_, diagnostics_);
  return {};
}

Result<void> BpfCollector::attach() {
  if (!options_.perf.target.cgroup.empty()) {
    Fd cgroup(::open(options_.perf.target.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup) return fail_errno("cgroup " + options_.perf.target.cgroup);
    TRY(object_->set_cgroup(cgroup.get()));
  }
  return object_->attach_tracepoints();
}

// Threads are listed until none is new: one made meanwhile by a listed thread was added in the kernel.
Result<void> BpfCollector::name_tasks() {
  if (wide_) return {};
  bool is_command = side_->command_pid().has_value();
  std::unordered_set<int32_t> named;
  for (int32_t tid : side_->live_tids())
    if (named.insert(tid).second) object_->add_task(tid, !is_command);
  for (int round = 0; !options_.perf.target.pids.empty() && round < kMostListings; round++) {
    auto threads = threads_of(options_.perf.target.pids);
    if (!threads) break;  // a process ended meanwhile
    bool is_any_new = false;
    for (const event::Task& task : *threads) {
      if (!named.insert(task.tid).second) continue;
      object_->add_task(task.tid, true);
      is_any_new = true;
    }
    if (!is_any_new) break;
  }
  return {};
}

Result<void> BpfCollector::open_samplers(int cpu) {
  AttrChoices choices{.stack_mode = options_.perf_tap ? StackMode::kDwarf : StackMode::kNone,
                      .stack_bytes = event::kMaxStackBytes,
                      .kernel = side_->may_sample_kernel(),
                      .inherit = false,
                      .start_disabled = true};
  for (uint32_t metric = 0; metric < side_->events().size(); metric++) {
    EventSpec spec = side_->events()[metric];
    if (spec.metric.is_time && spec.metric.period && spec.metric.period < kLeastClockPeriodNs) {
      spec.metric.period = kLeastClockPeriodNs;
      if (sampled_cpus_.empty())
        diagnostics_.add("period_raised_for_bpf", Severity::kNotice,
                         "the period of a clock was raised to 100000 ns, the least for a sampler on every CPU; --backend perf takes less");
    }
    perf_event_attr attr = sampling_attr(spec, choices);
    int fd = kernel_perf_api().open(attr, -1, cpu, -1, 0);
    if (fd == -ENODEV) return {};  // the CPU went offline
    if (fd < 0) return std::unexpected(open_error({spec.metric.name, -1, cpu}, -fd, options_.perf));
    Fd event(fd);
    if (options_.perf_tap) TRY(options_.perf_tap(fd, attr));
    TRY(object_->attach_sampler(std::move(event), metric));
  }
  sampled_cpus_.push_back(cpu);
  return {};
}

Result<void> BpfCollector::open(event::EventSink& sink) {
  sink_ = &sink;
  TRY(attach());
  TRY(side_->open(*side_band_));
  std::vector<int> online = TRY(read_cpu_list(options_.perf.online_cpus_path));
  TRY(object_->add_rings(online));
  TRY(name_tasks());
  for (int cpu : side_->cpus()) TRY(open_samplers(cpu));
  processes_->publish(monotonic_ns());
  return {};
}

Result<void> BpfCollector::start() {
  uint64_t now = monotonic_ns();
  last_period_ns_ = now;
  sampling_at_ns_ = now + options_.perf.delay_ns;
  sampling_ = options_.perf.delay_ns == 0;
  object_->turn(sampling_);
  return side_->start();
}

void BpfCollector::take_record(std::span<const std::byte> record) {
  bytes_read_ += record.size();
  records_++;
  const sampler_header* header = header_of(record);
  if (!header) return;
  if (header->type == SAMPLER_STACK) stacks_.keep(header->stack, header->time_ns, record);
  else if (header->type != SAMPLER_WANT_MODULE) sorter_.push_copy(header->time_ns, record);
  else processes_->make_table(static_cast<uint32_t>(header->stack), static_cast<int32_t>(header->pid));
}

void BpfCollector::drain() {
  object_->rings().read([this](std::span<const std::byte> record) { take_record(record); });
}

Result<void> BpfCollector::deliver(uint64_t until_ns) {
  TRY(sorter_.deliver(until_ns, [this](const event::RecordSorter::Item& item) { return deliver_record(item.record); }));
  if (!options_.count_only) stacks_.delivered_until(until_ns);
  return {};
}

// Before the first event that names it. An id that nobody has described becomes 0.
Result<void> BpfCollector::describe_stack(uint64_t& id, uint64_t time_ns) {
  StackBook::Stack* known = id ? stacks_.find(id) : nullptr;
  if (id == 0 || (known && known->is_told)) return {};
  if (!known || !decoder_.decode(known->record, stack_event_)) {
    diagnostics_.add("bpf_stacks_missing", Severity::kDataLoss, "samples whose stack did not come through the ring buffer");
    id = 0;
    return {};
  }
  auto& stack = std::get<event::StackDef>(stack_event_);
  stack.time_ns = time_ns;
  size_t believable = processes_->believable(stack.task.pid, seen_ns_of_stack(known->record), time_ns, stack.user_chain);
  if (believable < stack.user_chain.size()) {
    // The frame itself is right: only what it was unwound by was not. Its caller is in doubt.
    stack.user_chain = stack.user_chain.first(believable + 1);
    stack.user_end = event::WalkEnd::kNoMapping;
  }
  Result<void> told = sink_->on_event(stack_event_);
  stacks_.tell(*known);
  return told;
}

Result<void> BpfCollector::deliver_record(std::span<const std::byte> record) {
  if (!decoder_.decode(record, event_)) {
    diagnostics_.add("bpf_records_malformed", Severity::kDataLoss, "records from the BPF program that make no sense");
    return {};
  }
  if (auto* sample = std::get_if<event::Sample>(&event_)) TRY(describe_stack(sample->stack_id, sample->time_ns));
  if (auto* out = std::get_if<event::SwitchOut>(&event_)) TRY(describe_stack(out->stack_id, out->time_ns));
  return sink_->on_event(event_);
}

Result<void> BpfCollector::deliver_counts(uint64_t now_ns) {
  if (!options_.count_only) return {};
  Result<void> delivered;
  object_->take_counts([&](const sampler_count_key& key, const sampler_count& count) {
    uint64_t id = key.stack;
    if (delivered) delivered = describe_stack(id, now_ns);
    event_ = event::Count{now_ns, {static_cast<int32_t>(key.pid), static_cast<int32_t>(key.tid)}, key.metric,
                          count.samples, count.weight, id, key.in_kernel != 0};
    if (delivered) delivered = sink_->on_event(event_);
  });
  stacks_.delivered_until(last_counts_ns_);  // what was counted until the maps changed places before
  last_counts_ns_ = now_ns;
  return delivered;
}

void BpfCollector::wait(int timeout_ms) {
  pollfd ask{object_->rings().wait_fd(), POLLIN, 0};
  ::poll(&ask, 1, std::clamp(timeout_ms, 0, backoff_ms_));
}

Result<void> BpfCollector::follow_cpus() {
  auto online = read_cpu_list(options_.perf.online_cpus_path);
  if (!online) return {};
  TRY(object_->add_rings(*online));
  // The event of a CPU that went away does not come back with it.
  std::erase_if(sampled_cpus_, [&](int cpu) { return !std::ranges::binary_search(*online, cpu); });
  for (int cpu : *online) {
    bool is_wanted = options_.perf.target.cpus.empty() || std::ranges::binary_search(side_->cpus(), cpu);
    if (is_wanted && std::ranges::find(sampled_cpus_, cpu) == sampled_cpus_.end()) TRY(open_samplers(cpu));
  }
  return {};
}

Result<void> BpfCollector::periodic_work() {
  uint64_t now = monotonic_ns();
  if (!sampling_ && now >= sampling_at_ns_) {
    sampling_ = true;
    object_->turn(true);
  }
  if (now - last_period_ns_ < kPeriodNs) return {};
  last_period_ns_ = now;
  if (auto followed = follow_cpus(); !followed)
    diagnostics_.add("cpus_not_opened", Severity::kDataLoss, "CPUs that came online and could not be sampled", 1,
                     followed.error().message);
  return deliver_counts(now);
}

Result<bool> BpfCollector::poll(int timeout_ms) {
  wait(timeout_ms);
  uint64_t before = records_;
  drain();
  bool more = TRY(side_->poll(0));
  if (!more) return false;
  bool is_urgent = records_ - before >= kBusyRecords || processes_->is_behind();
  backoff_ms_ = is_urgent ? 1 : std::min(kMostBackoffMs, backoff_ms_ * 2);
  TRY(periodic_work());
  return true;
}

void BpfCollector::report_losses() {
  struct Row {
    sampler_counter counter;
    Severity severity;
    const char *name, *description;
  };
  static constexpr Row kRows[] = {
      {SAMPLER_RING_FULL_SAMPLES, Severity::kDataLoss, "lost_samples", "samples lost in the kernel's ring; lower -F"},
      {SAMPLER_RING_FULL_STACKS, Severity::kDataLoss, "bpf_lost_stacks", "stacks lost in the kernel's ring; lower -F"},
      {SAMPLER_RING_FULL_SNAPSHOTS, Severity::kInfo, "bpf_snapshots_refused", "stacks cut because a copy of them found no room in the ring"},
      {SAMPLER_RING_FULL_SWITCHES, Severity::kDataLoss, "bpf_lost_switches", "context switches lost in the kernel's ring"},
      {SAMPLER_NO_RING, Severity::kDataLoss, "bpf_no_ring", "records lost because their CPU had no ring yet"},
      {SAMPLER_COUNTS_FULL, Severity::kDataLoss, "bpf_counts_full", "samples not counted because there were too many different stacks"},
      {SAMPLER_TASKS_FULL, Severity::kDataLoss, "bpf_tasks_full", "threads not followed because there were too many"},
      {SAMPLER_PROCESSES_FULL, Severity::kNotice, "bpf_processes_full", "processes beyond what the BPF program can hold; their stacks are unwound from snapshots"},
      {SAMPLER_WAITS_FULL, Severity::kDataLoss, "bpf_waits_full", "waits not recorded because too many threads were off the CPU"},
      {SAMPLER_SNAPSHOTS_OVER_BUDGET, Severity::kInfo, "bpf_snapshots_over_budget", "stacks cut because too many samples wanted a copy of their stack"},
      {SAMPLER_UNTRACED_SWITCHES, Severity::kInfo, "bpf_switches_untraced", "switches to a CPU that the kernel's tracepoint left out; they are taken to have followed the wake-up"},
      {SAMPLER_LOOKED_UP, Severity::kInfo, "bpf_mappings_looked_up", "times that the BPF program looked a mapping up that it had not been told of yet"},
  };
  auto counters = object_->counters();
  for (const Row& row : kRows)
    if (counters[row.counter]) diagnostics_.add(row.name, row.severity, row.description, counters[row.counter]);
  if (sorter_.late())
    diagnostics_.add("records_late", Severity::kInfo, "records that came after later ones had been delivered", sorter_.late());
}

Result<void> BpfCollector::close() {
  if (closed_ || !sink_) return {};
  closed_ = true;
  object_->turn(false);
  object_->detach_samplers();
  drain();
  Result<void> closed = side_->close();
  report_losses();
  modules_->report(diagnostics_);
  diagnostics_.merge(side_->diagnostics());
  return closed;
}

}  // namespace cprof::collect
