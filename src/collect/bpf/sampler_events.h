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
  // Opens what is missing on these CPUs; the event of a CPU that went away does not come back with it. Called each second.
  Result<void> follow_cpus(std::span<const int> online);

 private:
  // A CPU whose events are open; how long the last of them has been enabled tells whether it still is.
  struct OpenCpu {
    int cpu = -1;
    int event = -1;  // the link's
    uint64_t enabled_ns = 0;
  };
  Result<int> open(uint32_t metric, int32_t tid, int cpu);
  static bool has_died(OpenCpu& open);
  bool begins_with_exec() const;
  bool is_of_tasks(const EventSpec& spec) const;
  EventSpec bounded(EventSpec spec);

  const BpfOptions& options_;
  std::vector<EventSpec> specs_;
  bool kernel_;
  SamplerObject& object_;
  Diagnostics& diagnostics_;
  std::vector<OpenCpu> cpus_;
};

}  // namespace cprof::collect
