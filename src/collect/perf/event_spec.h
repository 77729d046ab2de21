// What -e NAME means: the kernel's type and config, the unit, and how it is sampled unless told otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace cprof::collect {

struct EventSpec {
  event::Metric metric;
  bool every = false;         // each occurrence is a sample unless a period was asked: tracepoints, context switches
  bool only_user = false, only_kernel = false;  // ":u", ":k"
  uint16_t woken_tid_offset = 0;  // not 0: wake-ups, no metric; where the raw data hold who was woken
  int group = -1;             // events of one {a,b} have one number; the first is sampled, the others are read with it
  bool leads_group = false;
  bool is_read_only() const { return group >= 0 && !leads_group; }
};

// name: cycles, instructions, cache-misses, branch-misses, cpu-clock, task-clock, page-faults, context-switches and more
// of perf's list, rNNN, or sys:name of a tracepoint found under one of the tracefs directories.
Result<EventSpec> parse_event(std::string_view name, const std::vector<std::string>& tracefs);

// "a" is one event; "{a,b}" are events that are counted together and share the samples of the first.
Result<std::vector<EventSpec>> parse_events(std::string_view text, int group, const std::vector<std::string>& tracefs);

// Fills period or freq_hz of the metric: an asked period wins; clocks get the exact period of the frequency.
void set_rate(EventSpec& spec, uint64_t period, uint64_t freq_hz);

EventSpec cpu_clock_spec();

// For off-CPU: every context switch, taken as it happens.
EventSpec switch_stacks_spec();
// The tracepoint of wake-ups, with the place of the woken tid from its format file. An error says why there is none: no
// tracefs, or a pid namespace in which its numbers are not those that we see.
Result<EventSpec> find_wakeup_spec(const std::vector<std::string>& tracefs, const std::string& pid_namespace_path);

}  // namespace cprof::collect
