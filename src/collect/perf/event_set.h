// Every open event and ring of a recording: for each CPU the side band and sampling events of each task (or of all), and
// one ring that they share. The collector reads the rings; this class opens, reopens, switches and drops them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "base/result.h"
#include "collect/perf/event_attr.h"
#include "collect/perf/open_error.h"
#include "collect/perf/perf_api.h"
#include "collect/perf/ring.h"
#include "event/group_deltas.h"
#include "event/perf_record.h"

namespace cprof::collect {

struct CpuRing {
  int cpu;
  Ring ring;
  Fd owner;                      // the side band event whose ring it is
  std::vector<Fd> side_band, samplers;
  bool gone = false;             // the CPU went offline: read to its end, then retired
  bool retired = false;
  bool pollable = true;          // no hang-up seen on the owner
  uint64_t last_read_ns = 0;     // time of the last record taken
  uint64_t lost_reported = 0;    // by LOST records
  uint64_t lost_of_closed = 0;   // counted by events that were closed meanwhile
  uint64_t keep_from = 0;        // position of the first undelivered record
};

class EventSet {
 public:
  EventSet(PerfApi& api, const PerfOptions& options, size_t cpus, event::RecordDecoder& decoder, event::GroupDeltas& groups,
           Diagnostics& diagnostics);

  // Replaces events that this machine lacks and finds out whether the kernel may be sampled. Fills choices().
  Result<void> probe(std::vector<EventSpec>& specs);
  // The further events of off-CPU: what is refused is left out, with a line that says why. Adds the switch stacks to the
  // end of specs.
  void probe_off_cpu(std::vector<EventSpec>& specs);
  // Every Nth switch only from the next reopen_samplers() on.
  void thin_switch_stacks(uint64_t period);
  // The CPUs in turn, for these tasks; pid -1 stands for all. Tasks that have ended are passed over.
  Result<void> open(std::span<const int> cpus, std::span<const int32_t> tids);
  // Further tasks on the rings that are there.
  Result<void> add_tasks(std::span<const int32_t> tids);
  Result<void> reopen_samplers(uint32_t stack_bytes, std::span<const int32_t> tids);
  // The rings of these CPUs are the wanted ones: others are marked gone, missing ones opened.
  Result<void> follow_cpus(std::span<const int> cpus, std::span<const int32_t> tids);
  // Lets go of a gone ring that was read to its end. Its place in rings() stays, so that indexes stay.
  void retire(CpuRing& ring);
  // What was lost at the end of a ring without another record to tell it.
  uint64_t lost_untold(const CpuRing& ring) const;
  void enable_samplers();
  void disable_all();

  std::vector<CpuRing>& rings() { return rings_; }
  AttrChoices& choices() { return choices_; }
  // From now on events begin when they are opened.
  void set_started();
  size_t ring_pages() const { return pages_; }  // of data, per CPU; fewer than asked when the kernel refused
  size_t tasks_opened() const { return tasks_opened_; }

 private:
  Result<Fd> open_event(const perf_event_attr& attr, const OpenAttempt& attempt, bool& skipped,
                        int group = -1);
  Result<void> open_cpu(int cpu, std::span<const int32_t> tids);
  Result<bool> open_task(CpuRing& ring, int32_t tid);
  Result<void> open_samplers(CpuRing& ring, int32_t tid, std::vector<Fd>& into);
  Result<Ring> map_ring(int fd);
  Result<void> share_ring(const Fd& event, const Fd& owner);
  void note_id(const Fd& event, const perf_event_attr& attr, uint32_t metric, uint16_t woken_tid_offset = 0);
  void probe_wakeups();
  uint64_t lost_of(std::span<const Fd> events) const;
  int open_on_self(perf_event_attr attr, bool inherit = false);
  Result<void> probe_one(EventSpec& spec);
  Result<void> check_inherited_group(const EventSpec& spec);

  PerfApi& api_;
  const PerfOptions& options_;
  event::RecordDecoder& decoder_;
  event::GroupDeltas& groups_;
  Diagnostics& diagnostics_;
  AttrChoices choices_;
  std::vector<EventSpec> specs_;            // the metrics, then what off-CPU needs
  std::vector<CpuRing> rings_;
  Fd cgroup_;
  size_t pages_ = 0, cpus_wanted_ = 0, tasks_opened_ = 0;
  bool started_ = false;
};

}  // namespace cprof::collect
