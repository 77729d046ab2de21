#include "collect/bpf/sampler_events.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "collect/perf/event_attr.h"
#include "collect/perf/open_error.h"
#include "collect/perf/perf_api.h"
#include "event/perf_record.h"

namespace cprof::collect {

SamplerEvents::SamplerEvents(const BpfOptions& options, std::span<const EventSpec> specs, bool kernel, SamplerObject& object,
                             Diagnostics& diagnostics)
    : options_(options), kernel_(kernel), object_(object), diagnostics_(diagnostics) {
  for (const EventSpec& spec : specs) specs_.push_back(bounded(spec));
}

EventSpec SamplerEvents::bounded(EventSpec spec) {
  if (!spec.metric.is_time || !spec.metric.period || spec.metric.period >= kLeastClockPeriodNs) return spec;
  spec.metric.period = kLeastClockPeriodNs;
  diagnostics_.add("period_raised_for_bpf", Severity::kNotice,
                   "the period of a clock was raised to 100000 ns, the least for a sampler on every CPU; --backend perf takes less");
  return spec;
}

bool SamplerEvents::is_of_tasks(const EventSpec& spec) const {
  const PerfTarget& target = options_.perf.target;
  bool is_cycles = spec.metric.type == PERF_TYPE_HARDWARE && spec.metric.config == PERF_COUNT_HW_CPU_CYCLES;
  return !target.all_cpus && target.cgroup.empty() && !spec.metric.is_time && !is_cycles;
}

bool SamplerEvents::begins_with_exec() const {
  return !options_.perf.target.command.empty() && options_.perf.delay_ns == 0;
}

// The descriptor; -1: the task or the CPU is not there any more.
Result<int> SamplerEvents::open(uint32_t metric, int32_t tid, int cpu) {
  const EventSpec& spec = specs_[metric];
  AttrChoices choices{.stack_mode = options_.perf_tap ? StackMode::kDwarf : StackMode::kNone,
                      .stack_bytes = event::kMaxStackBytes,
                      .kernel = kernel_,
                      .inherit = tid >= 0 && options_.perf.inherit,
                      .enable_on_exec = tid >= 0 && begins_with_exec(),
                      .start_disabled = true};
  perf_event_attr attr = sampling_attr(spec, choices);
  attr.wakeup_watermark = metric;  // how the program knows it
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
  int fd = kernel_perf_api().open(attr, tid, cpu, -1, 0);
  bool is_gone = fd == -ENODEV || (fd == -ESRCH && tid >= 0);
  if (is_gone) return -1;
  if (fd < 0) return std::unexpected(open_error({spec.metric.name, tid, cpu}, -fd, options_.perf));
  Fd event(fd);
  if (options_.perf_tap) TRY(options_.perf_tap(fd, attr));
  // Attaching enables it. What a command's process does before it executes would spoil the first periods.
  TRY(object_.attach_sampler(std::move(event)));
  if (attr.enable_on_exec) kernel_perf_api().control(fd, PERF_EVENT_IOC_DISABLE, 0);
  return fd;
}

// A CPU that comes online is in the list before perf knows it: what cannot be opened yet is tried at the next look.
Result<void> SamplerEvents::open_cpu(int cpu) {
  OpenCpu opened{.cpu = cpu};
  for (uint32_t metric = 0; metric < specs_.size(); metric++) {
    if (is_of_tasks(specs_[metric])) continue;
    opened.event = TRY(open(metric, -1, cpu));
    if (opened.event < 0) return {};
  }
  cpus_.push_back(opened);
  return {};
}

Result<void> SamplerEvents::open_task(int32_t tid) {
  static constexpr int kEveryCpu[] = {-1};
  const std::vector<int>& wanted = options_.perf.target.cpus;
  std::span<const int> cpus = wanted.empty() ? std::span<const int>(kEveryCpu) : wanted;
  for (uint32_t metric = 0; metric < specs_.size(); metric++)
    for (int cpu : cpus)
      if (is_of_tasks(specs_[metric])) TRY(open(metric, tid, cpu));
  return {};
}

// A CPU may have gone and come back between two looks.
bool SamplerEvents::has_died(OpenCpu& open) {
  if (open.event < 0) return false;
  uint64_t values[2] = {};  // the count, the time enabled
  if (read(open.event, values, sizeof(values)) != static_cast<ssize_t>(sizeof(values))) return false;
  return std::exchange(open.enabled_ns, values[1]) == values[1];
}

Result<void> SamplerEvents::follow_cpus(std::span<const int> online) {
  std::erase_if(cpus_, [&](OpenCpu& open) { return !std::ranges::binary_search(online, open.cpu) || has_died(open); });
  const std::vector<int>& wanted = options_.perf.target.cpus;
  for (int cpu : online) {
    bool is_wanted = wanted.empty() || std::ranges::find(wanted, cpu) != wanted.end();
    if (is_wanted && std::ranges::find(cpus_, cpu, &OpenCpu::cpu) == cpus_.end()) TRY(open_cpu(cpu));
  }
  return {};
}

}  // namespace cprof::collect
