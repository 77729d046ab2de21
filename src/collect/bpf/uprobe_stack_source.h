// The stacks of the calls that the programs of uprobe tell, as events: one sample a call, of its thread, at its end. The perf
// backend runs beside for what the walk and the names need of the target: mappings, forks, execs. Used by the session, on one
// thread. The object must have been loaded with has_stacks and outlive this.
#pragma once

#include <cstdint>
#include <memory>

#include "base/diagnostics.h"
#include "collect/bpf/uprobe_object.h"
#include "collect/bpf/walk_stream.h"
#include "collect/perf/perf_collector.h"
#include "event/event.h"

namespace cprof::collect {

class UprobeStackSource final : public event::Collector, private WalkStream::Owner {
 public:
  static constexpr uint64_t kMostStacks = 20'000'000;  // samples delivered; more are counted as lost

  // runs_already: the target is what it will be; a command is still to become its program.
  static Result<std::unique_ptr<UprobeStackSource>> make(UprobeObject& object, PerfTarget target, bool runs_already);

  Result<void> open(event::EventSink& sink) override;  // before the first probe
  Result<void> start() override { return side_->start(); }
  Result<bool> poll(int timeout_ms) override;
  Result<void> close() override;                       // after the last
  const Diagnostics& diagnostics() const override { return diagnostics_; }

 private:
  UprobeStackSource(WalkMaps& maps, std::unique_ptr<PerfCollector> side, bool makes_tables);
  void describe(event::SessionInfo& info) override;
  bool on_sample(event::Sample& sample) override;
  Result<void> before_finish(uint64_t) override { return {}; }
  void report_losses();

  WalkMaps& maps_;
  std::unique_ptr<PerfCollector> side_;
  Diagnostics diagnostics_;
  WalkStream stream_;
  bool is_open_ = false;
  uint64_t delivered_ = 0, too_many_ = 0, last_look_ns_ = 0;
};

}  // namespace cprof::collect
