// The perf events whose overflows run the sampling program. Clocks and cycles are opened once a CPU and see everybody; the
// program drops at once what is not the target's. What else is counted is opened for each of the target's tasks and
// inherited by their children: its period is then found by what the target does, not by its neighbours on the CPU.
// Called by BpfCollector, on its thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "collect/bpf/bpf_options.h"
#include "collect/bpf/sampler_object.h"
#include "collect/perf/event_spec.h"

namespace cprof::collect {

class SamplerEvents {
 public:
  // specs: the metrics, of which the index goes into each sample. kernel: it may be sampled.
  SamplerEvents(const BpfOptions& options, std::span<const EventSpec> specs, bool kernel, SamplerObject& object,
                Diagnostics& diagnostics);

  Result<void> open_cpu(int cpu);
  // A task that has ended is passed over.
  Result<void> open_task(int32_t tid);
  // Opens what is missing on these CPUs; the event of a CPU that went away does not come back with it.
  Result<void> follow_cpus(std::span<const int> online);

 private:
  Result<void> open(uint32_t metric, int32_t tid, int cpu);
  bool begins_with_exec() const;
  bool is_of_tasks(const EventSpec& spec) const;
  EventSpec bounded(EventSpec spec);

  const BpfOptions& options_;
  std::vector<EventSpec> specs_;
  bool kernel_;
  SamplerObject& object_;
  Diagnostics& diagnostics_;
  std::vector<int> cpus_;
};

}  // namespace cprof::collect
