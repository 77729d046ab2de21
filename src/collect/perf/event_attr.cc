#include "collect/perf/event_attr.h"

#include <ctime>

#include <algorithm>

#include "event/perf_record.h"

namespace cprof::collect {
namespace {

// The same fields for every event, so that all trailers and the front of all samples look alike.
constexpr uint64_t kCommonFields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                   PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;

#if defined(__aarch64__)
constexpr uint64_t kRegisters = event::kAarch64Registers;
#else
constexpr uint64_t kRegisters = event::kX86_64Registers;
#endif

// Enough for the frames of most waits; a switch is more frequent than a sample.
constexpr uint32_t kSwitchStackBytes = 4096;

perf_event_attr common_attr(const AttrChoices& choices) {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.sample_type = kCommonFields;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.inherit = choices.inherit;
  attr.exclude_kernel = !choices.kernel;
  attr.exclude_hv = !choices.kernel;
  if (choices.count_lost) attr.read_format = PERF_FORMAT_LOST;
  attr.watermark = 1;
  attr.wakeup_watermark = choices.wakeup_bytes;
  attr.enable_on_exec = choices.enable_on_exec;
  attr.disabled = choices.enable_on_exec || choices.start_disabled;
  return attr;
}

}  // namespace

uint32_t usable_stack_bytes(uint64_t bytes) {
  return static_cast<uint32_t>(std::min<uint64_t>((bytes + 7) / 8 * 8, event::kMaxStackBytes));
}

// No build_id: with it the record has a build-id instead of device and inode, and those are what tells that a file found
// later is the mapped one. The build-id is read from that file.
perf_event_attr side_band_attr(const AttrChoices& choices) {
  perf_event_attr attr = common_attr(choices);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.mmap = attr.mmap2 = 1;
  attr.comm = attr.comm_exec = 1;
  attr.task = 1;
  attr.context_switch = choices.switches;
  attr.ksymbol = choices.kernel_symbols;
  return attr;
}

namespace {

// Counts when its leader does, and is read with it.
perf_event_attr counting_attr(perf_event_attr attr) {
  attr.disabled = attr.enable_on_exec = 0;
  attr.watermark = attr.wakeup_watermark = 0;
  return attr;
}

}  // namespace

perf_event_attr sampling_attr(const EventSpec& spec, const AttrChoices& choices) {
  perf_event_attr attr = common_attr(choices);
  attr.type = spec.metric.type;
  attr.config = spec.metric.config;
  if (spec.only_user) attr.exclude_kernel = attr.exclude_hv = 1;
  if (spec.only_kernel) attr.exclude_user = 1;
  if (spec.is_read_only()) return counting_attr(attr);
  if (spec.leads_group) {
    attr.sample_type |= PERF_SAMPLE_READ;
    attr.read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
  }
  if (spec.metric.freq_hz) attr.freq = 1, attr.sample_freq = spec.metric.freq_hz;
  else attr.sample_period = spec.metric.period;
  // Asked for the period of each sample, the kernel delivers every single software event instead of every Nth.
  if (!attr.freq) attr.sample_type &= ~static_cast<uint64_t>(PERF_SAMPLE_PERIOD);
  bool user_chain = choices.stack_mode == StackMode::kFramePointer;
  bool kernel_chain = choices.kernel && !spec.only_user && choices.stack_mode != StackMode::kNone;
  if (user_chain || kernel_chain) attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
  attr.exclude_callchain_user = !user_chain;
  attr.exclude_callchain_kernel = !kernel_chain;
  if (choices.stack_mode == StackMode::kDwarf) {
    attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attr.sample_regs_user = kRegisters;
    attr.sample_stack_user = usable_stack_bytes(choices.stack_bytes);
  }
  return attr;
}

perf_event_attr switch_stack_attr(const EventSpec& spec, const AttrChoices& choices) {
  AttrChoices small = choices;
  small.stack_bytes = std::min(choices.stack_bytes, kSwitchStackBytes);
  perf_event_attr attr = sampling_attr(spec, small);
  attr.exclude_kernel = attr.exclude_hv = 0;
  return attr;
}

perf_event_attr wakeup_attr(const EventSpec& spec, const AttrChoices& choices) {
  AttrChoices plain = choices;
  plain.stack_mode = StackMode::kNone;
  perf_event_attr attr = sampling_attr(spec, plain);
  attr.sample_type |= PERF_SAMPLE_RAW;
  attr.exclude_kernel = attr.exclude_hv = 0;
  return attr;
}

perf_event_attr attr_for(const EventSpec& spec, const AttrChoices& choices) {
  if (spec.woken_tid_offset) return wakeup_attr(spec, choices);
  return spec.metric.is_switch_stacks ? switch_stack_attr(spec, choices) : sampling_attr(spec, choices);
}

}  // namespace cprof::collect
