#include "collect/bpf/uprobe_stack_source.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "collect/perf/cpu_list.h"

namespace cprof::collect {
namespace {

constexpr uint64_t kRepeatStacksNs = 5 * kSecondNs;
constexpr uint32_t kSideBandRingPages = 512;

PerfOptions side_band_of(PerfTarget target) {
  PerfOptions perf;
  perf.target = std::move(target);
  perf.events = {"cpu-clock"};
  perf.side_band_only = true;
  perf.stack_mode = StackMode::kNone;
  perf.kernel = perf.switches = false;
  perf.ring_pages = kSideBandRingPages;
  return perf;
}

}  // namespace

UprobeStackSource::UprobeStackSource(WalkMaps& maps, std::unique_ptr<PerfCollector> side, bool makes_tables)
    : maps_(maps), side_(std::move(side)), stream_(maps, {.makes_tables = makes_tables}, *this, diagnostics_) {}

Result<std::unique_ptr<UprobeStackSource>> UprobeStackSource::make(UprobeObject& object, PerfTarget target, bool runs_already) {
  CPROF_CHECK(object.walk());
  const bool is_narrow = !target.all_cpus && target.cgroup.empty();
  auto side = TRY(PerfCollector::make(side_band_of(std::move(target))));
  // What a command has mapped before it becomes its program is cprof's.
  return std::unique_ptr<UprobeStackSource>(new UprobeStackSource(*object.walk(), std::move(side), is_narrow && runs_already));
}

Result<void> UprobeStackSource::open(event::EventSink& sink) {
  stream_.deliver_to(sink);
  is_open_ = true;
  TRY(side_->open(stream_));
  const std::vector<int> online = TRY(read_online_cpus(PerfOptions().online_cpus_path, PerfOptions().stat_path));
  TRY(maps_.add_rings(online));
  stream_.publish(monotonic_ns());
  return {};
}

void UprobeStackSource::describe(event::SessionInfo& info) {
  info.metrics = {{.name = "calls", .unit = "count", .period = 1}};
  info.has_switches = false;
  info.stacks_repeat_ns = 2 * kRepeatStacksNs;
  info.kernel_stacks_missing.clear();  // nobody wants them
}

bool UprobeStackSource::on_sample(event::Sample&) {
  const bool is_wanted = delivered_ < kMostStacks;
  (is_wanted ? delivered_ : too_many_)++;
  return is_wanted;
}

Result<bool> UprobeStackSource::poll(int timeout_ms) {
  stream_.drain();
  const bool more = TRY(side_->poll(timeout_ms));
  const uint64_t now = monotonic_ns();
  stream_.repeat_stacks(now, kRepeatStacksNs);
  if (now - last_look_ns_ < kSecondNs) return more;
  last_look_ns_ = now;
  // A CPU that comes online has no ring yet; what it misses until then is counted.
  if (auto online = read_online_cpus(PerfOptions().online_cpus_path, PerfOptions().stat_path)) TRY(maps_.add_rings(*online));
  return more;
}

Result<void> UprobeStackSource::close() {
  if (!std::exchange(is_open_, false)) return {};
  stream_.drain();
  Result<void> closed = side_->close();
  report_losses();
  diagnostics_.merge(side_->diagnostics());
  return closed;
}

void UprobeStackSource::report_losses() {
  stream_.report();
  if (const uint64_t lost = maps_.counters()[SAMPLER_RING_FULL_SAMPLES])
    diagnostics_.add("stacks_lost", Severity::kDataLoss,
                     "told calls without a stack, as stacks came faster than they could be read; take --min-duration or --rate-limit", lost);
  if (too_many_)
    diagnostics_.add("stacks_too_many", Severity::kDataLoss, "told calls without a stack, as there were too many; take --min-duration", too_many_);
}

}  // namespace cprof::collect
