// What to record with BPF: what perf would be asked, and what only BPF can do.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "collect/bpf/sampler_abi.h"
#include "collect/bpf/object_bytes.h"
#include "collect/perf/perf_options.h"

namespace cprof::collect {

// A sampled clock interrupts every CPU, busy with the target or not. In a virtual machine each interrupt may take 40 us:
// faster than this, a CPU can be kept from all other work until the kernel's watchdog complains.
inline constexpr uint64_t kMostClockHz = 10'000;
inline constexpr uint64_t kLeastClockPeriodNs = 1'000'000'000 / kMostClockHz;
inline constexpr uint32_t kMostDepth = SAMPLER_MAX_DEPTH;

struct BpfOptions {
  PerfOptions perf;               // the target, events, rate; stack_mode kDwarf means the tables
  uint32_t max_depth = kMostDepth;  // of user frames
  bool off_cpu = false;           // where threads left the CPU, and who woke them
  bool count_only = false;        // samples are counted per stack: no times, little data
  uint64_t repeat_stacks_ns = 5'000'000'000;  // a stack that is still met is told again after so long

  std::optional<SamplerVariant> variant;  // for tests: this one, whatever the kernel can

  // For the test that compares both ways: each sample is also taken by perf, with registers and stack, and this is given
  // the event, to map its ring before it is used.
  std::function<Result<void>(int perf_event, const perf_event_attr& attr)> perf_tap;
};

}  // namespace cprof::collect
