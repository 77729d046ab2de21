// dual_capture [-v] PROGRAM ARGS...: runs a command under the BPF sampler, whose perf events also give perf's own sample
// of the same moment (registers and 64 KB of stack), and compares each stack that the BPF program walked with what the
// snapshot unwinder makes of perf's. Prints one line of counts; status 1 when a stack differs.
//
// Which belong together: same thread, same instruction pointer, nearest in time on either side, within 2 ms.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "collect/bpf/bpf_collector.h"
#include "collect/perf/perf_api.h"
#include "collect/perf/ring.h"
#include "event/perf_record.h"
#include "pipeline/modules.h"
#include "pipeline/user_stack.h"

namespace {

using namespace cprof;

constexpr size_t kRingPages = 4096;
constexpr uint64_t kSameMomentNs = 2'000'000;

struct BpfSample {
  uint64_t time_ns, ip, stack_id;
};
struct PerfSample {
  uint64_t time_ns;
  event::Task task;
  uint64_t ip;
  std::vector<std::byte> record;
};
struct Walked {
  std::vector<uint64_t> frames;
  event::WalkEnd end;
};

// What the collector delivers; mappings are kept as the last image has them.
class Sink : public event::EventSink {
 public:
  Result<void> begin(const event::SessionInfo&) override { return {}; }
  Result<void> finish(uint64_t) override { return {}; }
  Result<void> on_event(const event::Event& event) override {
    if (const auto* sample = std::get_if<event::Sample>(&event)) {
      if (sample->snapshot) snapshots++;
      else if (sample->ip) samples[sample->task.tid].push_back({sample->time_ns, sample->ip, sample->stack_id});
    } else if (const auto* def = std::get_if<event::StackDef>(&event)) {
      stacks[def->id] = {{def->user_chain.begin(), def->user_chain.end()}, def->user_end};
    } else if (const auto* mmap = std::get_if<event::Mmap>(&event)) {
      tracker.apply(*mmap);
    } else if (const auto* comm = std::get_if<event::Comm>(&event)) {
      tracker.apply(*comm);
      if (comm->exec) executed_ns = comm->time_ns;
    } else if (const auto* fork = std::get_if<event::Fork>(&event)) {
      tracker.apply(*fork);
    }
    return {};
  }

  std::map<int32_t, std::vector<BpfSample>> samples;  // by thread, in time order
  std::unordered_map<uint64_t, Walked> stacks;
  space::Tracker tracker;
  uint64_t snapshots = 0, executed_ns = 0;
};

// Perf's own samples of the same events.
class PerfRings {
 public:
  Result<void> add(int fd, const perf_event_attr& attr) {
    rings_.push_back(TRY(collect::Ring::map(collect::kernel_perf_api(), fd, kRingPages)));
    decoder.add_layout(event::layout_of(attr, 0), {});
    return {};
  }
  void read(std::vector<PerfSample>& into) {
    for (collect::Ring& ring : rings_) {
      ring.look_at_head();
      while (auto record = ring.next()) {
        event::Event event;
        if (decoder.decode(*record, event) != event::DecodeOutcome::kEvent) continue;
        if (const auto* lost_event = std::get_if<event::Lost>(&event)) lost += lost_event->count;
        if (const auto* sample = std::get_if<event::Sample>(&event))
          into.push_back({sample->time_ns, sample->task, sample->ip, {record->begin(), record->end()}});
      }
      ring.release(ring.cursor());
    }
  }
  event::RecordDecoder decoder;
  uint64_t lost = 0;

 private:
  std::vector<collect::Ring> rings_;
};

struct Counts {
  uint64_t pairs = 0, equal = 0, bpf_longer = 0, bpf_shorter = 0, differ = 0, unpaired = 0, bpf_complete = 0, perf_complete = 0;
};

const BpfSample* nearest(const std::vector<BpfSample>& samples, const PerfSample& wanted) {
  const BpfSample* best = nullptr;
  auto distance = [&](const BpfSample& s) { return s.time_ns > wanted.time_ns ? s.time_ns - wanted.time_ns : wanted.time_ns - s.time_ns; };
  auto from = std::ranges::lower_bound(samples, wanted.time_ns - kSameMomentNs, {}, &BpfSample::time_ns);
  for (; from != samples.end() && from->time_ns <= wanted.time_ns + kSameMomentNs; ++from)
    if (from->ip == wanted.ip && (!best || distance(*from) < distance(*best))) best = &*from;
  return best;
}

// Frames that both have must be the same; then who has more, when the other did not reach the root.
void compare(const Walked& bpf, const pipeline::UserStack& perf, Counts& counts, bool verbose, const PerfSample& sample) {
  bool bpf_done = bpf.end == event::WalkEnd::kComplete, perf_done = perf.end == profile::StackEnd::kComplete;
  counts.pairs++;
  counts.bpf_complete += bpf_done;
  counts.perf_complete += perf_done;
  size_t common = std::min(bpf.frames.size(), perf.frames.size()), same = 0;
  while (same < common && bpf.frames[same] == perf.frames[same].pc) same++;
  if (same == common && bpf.frames.size() == perf.frames.size()) counts.equal++;
  else if (same == common && !perf_done && bpf.frames.size() > common) counts.bpf_longer++;
  else if (same == common && !bpf_done && perf.frames.size() > common) counts.bpf_shorter++;
  else counts.differ++;
  bool is_wrong = same != common || (bpf.frames.size() != perf.frames.size());
  if (!verbose || !is_wrong) return;
  fmt::print("tid {} time {} ip {:x}: {} of {} (bpf, end {}) and {} (perf, end {})\n", sample.task.tid, sample.time_ns, sample.ip, same,
             bpf.frames.size(), static_cast<int>(bpf.end), perf.frames.size(), static_cast<int>(perf.end));
  for (size_t i = same > 2 ? same - 2 : 0; i < std::min(same + 3, std::max(bpf.frames.size(), perf.frames.size())); i++)
    fmt::print("  {:2} bpf {:x} perf {:x}\n", i, i < bpf.frames.size() ? bpf.frames[i] : 0, i < perf.frames.size() ? perf.frames[i].pc : 0);
}

Counts compare_all(Sink& sink, PerfRings& rings, const std::vector<PerfSample>& perf, bool verbose) {
  Counts counts;
  Diagnostics diagnostics;
  pipeline::Options options;
  pipeline::Modules modules(diagnostics);
  pipeline::UserStackReader reader(event::Arch::kX86_64, options, modules, sink.tracker, diagnostics);
  for (const PerfSample& sample : perf) {
    if (sample.time_ns < sink.executed_ns) continue;
    auto of_thread = sink.samples.find(sample.task.tid);
    if (of_thread == sink.samples.end()) continue;
    const BpfSample* bpf = nearest(of_thread->second, sample);
    auto walked = bpf ? sink.stacks.find(bpf->stack_id) : sink.stacks.end();
    if (walked == sink.stacks.end()) {
      counts.unpaired++;
      continue;
    }
    event::Event event;
    rings.decoder.decode(sample.record, event);
    const auto& decoded = std::get<event::Sample>(event);
    if (walked->second.end == event::WalkEnd::kNoRegisters) continue;
    compare(walked->second, reader.read(decoded, sink.tracker.process(decoded.task.pid, decoded.time_ns)), counts, verbose, sample);
  }
  return counts;
}

Result<int> run(std::vector<std::string> command, bool verbose) {
  PerfRings rings;
  std::vector<PerfSample> perf;
  Sink sink;
  collect::BpfOptions options;
  options.perf.target.command = std::move(command);
  options.perf.freq_hz = 999;
  options.perf_tap = [&](int fd, const perf_event_attr& attr) { return rings.add(fd, attr); };
  auto collector = TRY(collect::BpfCollector::make(options));
  TRY(collector->open(sink));
  TRY(collector->start());
  while (TRY(collector->poll(10))) rings.read(perf);
  rings.read(perf);
  TRY(collector->close());
  Counts counts = compare_all(sink, rings, perf, verbose);
  fmt::print("pairs {} equal {} bpf-longer {} bpf-shorter {} differ {} unpaired {} snapshots {} bpf-complete {} perf-complete {} perf-lost {}\n",
             counts.pairs, counts.equal, counts.bpf_longer, counts.bpf_shorter, counts.differ, counts.unpaired, sink.snapshots,
             counts.bpf_complete, counts.perf_complete, rings.lost);
  return counts.differ ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  std::vector<std::string> command(argv + 1 + verbose, argv + argc);
  if (command.empty()) {
    fmt::print(stderr, "usage: dual_capture [-v] PROGRAM ARGS...\n");
    return 2;
  }
  auto status = run(std::move(command), verbose);
  if (status) return *status;
  fmt::print(stderr, "dual_capture: {}\n", status.error().message);
  return 77;
}
