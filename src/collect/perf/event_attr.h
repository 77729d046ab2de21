// perf_event_attr of the two kinds of event that are opened per CPU (and task): the side band event, which owns the ring
// and reports mappings, names, forks, exits and switches, and the sampling events. The side band is an event of its own
// so that nothing of it is missed while sampling waits for --delay or is reopened with larger stacks.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

#include "collect/perf/event_spec.h"
#include "collect/perf/perf_options.h"

namespace cprof::collect {

struct AttrChoices {
  StackMode stack_mode = StackMode::kDwarf;
  uint32_t stack_bytes = 0;
  bool kernel = true;
  bool inherit = true;
  bool enable_on_exec = false;    // a command: events begin with its exec; else they begin when opened or enabled
  bool start_disabled = false;
  bool switches = true;           // the side band tells them
  bool kernel_symbols = false;    // and what code the kernel makes: told to events of a whole CPU only
  bool count_lost = false;        // the kernel has PERF_FORMAT_LOST: 6.0
  uint32_t wakeup_bytes = 0;
};

perf_event_attr side_band_attr(const AttrChoices& choices);
perf_event_attr sampling_attr(const EventSpec& spec, const AttrChoices& choices);
// Switch stacks: context switches are kernel events, so they are taken even where no kernel stacks are wanted.
perf_event_attr switch_stack_attr(const EventSpec& spec, const AttrChoices& choices);
// Wake-ups: raw data, no stack.
perf_event_attr wakeup_attr(const EventSpec& spec, const AttrChoices& choices);
// The one that fits the spec.
perf_event_attr attr_for(const EventSpec& spec, const AttrChoices& choices);

// The snapshot size as the kernel takes it: a multiple of 8, at most 65,528.
uint32_t usable_stack_bytes(uint64_t bytes);

}  // namespace cprof::collect
