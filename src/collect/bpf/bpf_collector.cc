// Order of opening: the programs are loaded, and those that follow forks and execs attached, before the perf backend
// lists the target's threads, so that no thread falls between. Sampling events are per CPU and see everybody; the program
// drops at once what is not the target's.
#include "collect/bpf/bpf_collector.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <ctime>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "collect/bpf/support.h"
#include "collect/perf/cpu_list.h"
#include "collect/perf/running_tasks.h"

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

void limit_rate(BpfOptions& options, Diagnostics& diagnostics) {
  uint64_t& freq_hz = options.perf.freq_hz;
  if (freq_hz <= kMostClockHz || options.perf.period) return;
  if (freq_hz != kMaxFrequency)
    diagnostics.add("frequency_lowered_for_bpf", Severity::kNotice,
                    "the frequency was lowered to 10000 Hz, the most for a sampler on every CPU; --backend perf takes more", 1,
                    fmt::format("{} Hz", freq_hz));
  freq_hz = kMostClockHz;
}

// Of each CPU, a power of two. A large ring is always cold; but 60,000 switches a second are 10 MB, stacks of ever new
// processes some more, and a busy machine may keep their reader waiting for most of a second.
constexpr uint32_t kLeastRingBytes = 1 << 20, kSamplesRingBytes = 1 << 22, kSwitchesRingBytes = 1 << 23, kAllRingsBytes = 1 << 28;

constexpr uint32_t kSideBandPages = 512;  // of 4 KiB: thousands of forks and execs

uint32_t ring_bytes(bool has_switches) {
  auto cpus = static_cast<uint32_t>(std::max<long>(sysconf(_SC_NPROCESSORS_ONLN), 1));
  return std::clamp(std::bit_floor(kAllRingsBytes / cpus), kLeastRingBytes, has_switches ? kSwitchesRingBytes : kSamplesRingBytes);
}

void limit_depth(BpfOptions& options, Diagnostics& diagnostics) {
  if (options.max_depth > kMostDepth)
    diagnostics.add("max_depth_lowered_for_bpf", Severity::kNotice,
                    "--max-depth was lowered to 4096, the most that the BPF program walks; --backend perf takes more", 1,
                    fmt::format("{}", options.max_depth));
  options.max_depth = std::clamp<uint32_t>(options.max_depth, 1, kMostDepth);
}

// Seen here, of threads that run already, and by the programs, of new ones.
constexpr const char *kTasksFull = "bpf_tasks_full", *kTasksFullWords = "threads not followed because there were too many";

PerfOptions side_band_options(const BpfOptions& options) {
  PerfOptions perf = options.perf;
  perf.side_band_only = true;
  perf.off_cpu = false;
  perf.stack_mode = StackMode::kNone;
  // Counts have no times, so nobody would know what happened between.
  perf.switches = options.perf.switches && !options.off_cpu && !options.count_only;
  perf.ring_pages = kSideBandPages;
  return perf;
}

}  // namespace

BpfCollector::BpfCollector(BpfOptions options, std::unique_ptr<PerfCollector> side)
    : options_(std::move(options)), side_(std::move(side)) {}

BpfCollector::~BpfCollector() = default;

Result<std::unique_ptr<BpfCollector>> BpfCollector::make(BpfOptions options) {
  if (auto obstacle = find_bpf_obstacle(read_bpf_machine())) return fail("bpf: " + obstacle->text(), ENOTSUP);
  Diagnostics limits;
  limit_depth(options, limits);
  limit_rate(options, limits);
  auto side = TRY(PerfCollector::make(side_band_options(options)));
  for (const EventSpec& spec : side->events()) {
    if (spec.group >= 0) return fail("-e {...}: not supported by --backend bpf, perf can", ENOTSUP);
    if (spec.metric.type == PERF_TYPE_TRACEPOINT)
      return fail(fmt::format("-e {}: tracepoints are not supported by --backend bpf, perf can", spec.metric.name), ENOTSUP);
  }
  std::unique_ptr<BpfCollector> collector(new BpfCollector(std::move(options), std::move(side)));
  collector->diagnostics_.merge(limits);
  TRY(collector->load());
  TRY(collector->attach());
  return collector;
}

sampler_settings BpfCollector::settings() const {
  const PerfOptions& perf = options_.perf;
  sampler_settings settings{};
  settings.filter = perf.target.all_cpus ? SAMPLER_ALL : perf.target.cgroup.empty() ? SAMPLER_TASKS : SAMPLER_CGROUP;
  settings.max_depth = options_.max_depth;
  settings.has_metrics = side_->events().size() > 1;
  settings.ring_bytes = ring_bytes(options_.off_cpu);
  settings.kernel_stacks = perf.kernel && perf.stack_mode != StackMode::kNone;
  settings.user_stacks = perf.stack_mode == StackMode::kDwarf          ? SAMPLER_USER_TABLES
                         : perf.stack_mode == StackMode::kFramePointer ? SAMPLER_USER_FRAME_POINTERS
                                                                       : SAMPLER_USER_NONE;
  settings.inherit = perf.inherit;
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
  object_ = TRY(SamplerObject::load(settings(), options_.variant));
  if (!object_->full_refused().empty())
    diagnostics_.add("bpf_variant_5_10", Severity::kInfo, "the BPF programs are those for Linux 5.10", 1, object_->full_refused());
  const WalkStream::Choices choices{.makes_tables = !wide_, .is_counted = options_.count_only};
  stream_ = std::make_unique<WalkStream>(object_->walk(), choices, static_cast<WalkStream::Owner&>(*this), diagnostics_);
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

Result<void> BpfCollector::name_task(int32_t tid, bool on) {
  if (!object_->add_task(tid, on)) diagnostics_.add(kTasksFull, Severity::kDataLoss, kTasksFullWords);
  return events_->open_task(tid);
}

// Threads are listed until none is new: one made meanwhile by a listed thread was added in the kernel.
Result<void> BpfCollector::name_tasks() {
  if (wide_) return {};
  bool is_command = side_->command_pid().has_value();
  std::unordered_set<int32_t> named;
  for (int32_t tid : side_->live_tids())
    if (named.insert(tid).second) TRY(name_task(tid, !is_command));
  for (int round = 0; !options_.perf.target.pids.empty() && round < kMostListings; round++) {
    auto threads = threads_of(options_.perf.target.pids);
    if (!threads) break;  // a process ended meanwhile
    bool is_any_new = false;
    for (const event::Task& task : *threads) {
      if (!named.insert(task.tid).second) continue;
      TRY(name_task(task.tid, true));
      is_any_new = true;
    }
    if (!is_any_new) break;
  }
  return {};
}

Result<void> BpfCollector::open(event::EventSink& sink) {
  sink_ = &sink;
  stream_->deliver_to(sink);
  TRY(side_->open(*stream_));
  std::vector<int> online = TRY(read_online_cpus(options_.perf.online_cpus_path, options_.perf.stat_path));
  TRY(object_->walk().add_rings(online));
  events_ = std::make_unique<SamplerEvents>(options_, side_->events(), side_->may_sample_kernel(), *object_, diagnostics_);
  TRY(name_tasks());
  for (int cpu : side_->cpus()) TRY(events_->open_cpu(cpu));
  stream_->publish(monotonic_ns());
  return {};
}

Result<void> BpfCollector::start() {
  uint64_t now = monotonic_ns();
  last_period_ns_ = last_counts_ns_ = now;
  counts_period_ns_ = kPeriodNs;
  sampling_at_ns_ = now + options_.perf.delay_ns;
  sampling_ = options_.perf.delay_ns == 0;
  object_->turn(sampling_);
  return side_->start();
}

void BpfCollector::describe(event::SessionInfo& info) {
  info.has_off_cpu = options_.off_cpu;
  info.has_switches = info.has_switches || options_.off_cpu;
  info.stacks_repeat_ns = 2 * options_.repeat_stacks_ns;  // and what its ring and the sorter take
  info.has_kernel_stacks = side_->may_sample_kernel() && options_.perf.stack_mode != StackMode::kNone;
  if (info.has_kernel_stacks) info.kernel_stacks_missing.clear();
  if (options_.off_cpu) info.metrics.push_back(switch_stacks_spec().metric);
}

bool BpfCollector::on_sample(event::Sample& sample) {
  const auto switch_stacks = static_cast<uint32_t>(side_->events().size());
  if (sample.metric == SAMPLER_SWITCH_STACKS) sample.metric = switch_stacks;
  samples_delivered_ += sample.metric != switch_stacks;
  return true;
}

Result<void> BpfCollector::before_finish(uint64_t end_ns) {
  for (int map = 0; map < 2; map++) TRY(deliver_counts(end_ns, true));
  return {};
}

Result<void> BpfCollector::deliver_count(const sampler_count_key& key, const sampler_count& count, uint64_t now_ns) {
  uint64_t id = key.stack;
  samples_delivered_ += count.samples;
  TRY(stream_->describe_stack(id, now_ns));
  return sink_->on_event(event::Count{now_ns, {static_cast<int32_t>(key.pid), static_cast<int32_t>(key.tid)}, key.metric,
                                      count.samples, count.weight, id, key.in_kernel != 0});
}

// is_last: every stack that has come has been told. Else one may still wait for its turn, and its counts wait with it.
Result<void> BpfCollector::deliver_counts(uint64_t now_ns, bool is_last) {
  if (!options_.count_only) return {};
  const uint64_t changed_places_ns = std::exchange(last_counts_ns_, now_ns);  // the maps did: what comes now was counted before
  auto counts = std::exchange(early_counts_, {});
  object_->take_counts([&](const sampler_count_key& key, const sampler_count& count) { counts.emplace_back(key, count); });
  counts_period_ns_ = counts.size() > SAMPLER_MAX_COUNTS / 8 ? kPeriodNs / 10 : kPeriodNs;
  for (const auto& [key, count] : counts) {
    if (key.stack && !is_last && !stream_->is_told(key.stack)) early_counts_.emplace_back(key, count);
    else TRY(deliver_count(key, count, now_ns));
  }
  if (early_counts_.empty()) stream_->counts_delivered_until(changed_places_ns);
  return {};
}

void BpfCollector::wait(int timeout_ms) {
  pollfd ask{object_->walk().rings().wait_fd(), POLLIN, 0};
  ::poll(&ask, 1, std::clamp(timeout_ms, 0, backoff_ms_));
}

Result<void> BpfCollector::follow_cpus() {
  auto online = read_online_cpus(options_.perf.online_cpus_path, options_.perf.stat_path);
  if (!online) return {};
  TRY(object_->walk().add_rings(*online));
  return events_->follow_cpus(*online);
}

Result<void> BpfCollector::periodic_work() {
  uint64_t now = monotonic_ns();
  if (!sampling_ && now >= sampling_at_ns_) {
    sampling_ = true;
    object_->turn(true);
  }
  if (now - last_counts_ns_ >= counts_period_ns_) TRY(deliver_counts(now, false));
  stream_->repeat_stacks(now, options_.repeat_stacks_ns);
  if (now - last_period_ns_ < kPeriodNs) return {};
  last_period_ns_ = now;
  if (auto followed = follow_cpus(); !followed)
    diagnostics_.add("cpus_not_opened", Severity::kDataLoss, "CPUs that came online and could not be sampled", 1,
                     followed.error().message);
  return {};
}

Result<bool> BpfCollector::poll(int timeout_ms) {
  wait(timeout_ms);
  const uint64_t before = stream_->records();
  stream_->drain();
  bool more = TRY(side_->poll(0));
  if (!more) return false;
  bool is_urgent = stream_->records() - before >= kBusyRecords || stream_->is_behind();
  backoff_ms_ = is_urgent ? 1 : std::min(kMostBackoffMs, backoff_ms_ * 2);
  TRY(periodic_work());
  return true;
}

void BpfCollector::report_losses() {
  static constexpr CounterWords kRows[] = {
      {SAMPLER_RING_FULL_SAMPLES, Severity::kDataLoss, "lost_samples", "samples lost in the kernel's ring; lower -F"},
      {SAMPLER_RING_FULL_SWITCHES, Severity::kDataLoss, "bpf_lost_switches", "context switches lost in the kernel's ring"},
      {SAMPLER_COUNTS_FULL, Severity::kDataLoss, "bpf_counts_full", "samples not counted because there were too many different stacks"},
      {SAMPLER_TASKS_FULL, Severity::kDataLoss, kTasksFull, kTasksFullWords},
      {SAMPLER_WAITS_FULL, Severity::kDataLoss, "bpf_waits_full", "waits not recorded because too many threads were off the CPU"},
      {SAMPLER_UNTRACED_SWITCHES, Severity::kInfo, "bpf_switches_untraced", "switches to a CPU that the kernel's tracepoint left out; they are taken to have followed the wake-up"},
  };
  auto counters = object_->walk().counters();
  report_counters(kRows, counters, diagnostics_);
  // What was taken is delivered or among the losses above; anything else is a fault here.
  uint64_t accounted = samples_delivered_ + counters[SAMPLER_RING_FULL_SAMPLES] + counters[SAMPLER_COUNTS_FULL];
  if (accounted != counters[SAMPLER_SAMPLES])
    diagnostics_.add("bpf_samples_unaccounted", Severity::kDataLoss, "samples that were taken and neither came nor were counted as lost", 1,
                     fmt::format("{} taken, {} accounted for", counters[SAMPLER_SAMPLES], accounted));
}

Result<void> BpfCollector::close() {
  if (closed_ || !sink_) return {};
  closed_ = true;
  object_->turn(false);
  object_->detach_samplers();
  stream_->drain();
  Result<void> closed = side_->close();
  report_losses();
  stream_->report();
  diagnostics_.merge(side_->diagnostics());
  return closed;
}

}  // namespace cprof::collect
