// dual_capture [-v] [--for-5.10] PROGRAM ARGS... | -a SECONDS: runs a command, or the whole machine, under the BPF sampler,
// whose perf events also give perf's own sample of the same moment (registers and 64 KB of stack), and compares each stack
// that the BPF program walked with what the snapshot unwinder makes of perf's. Prints one line of counts; status 1 when a
// stack differs. --for-5.10: by the programs for older kernels.
//
// Which belong together: same thread, same instruction pointer, nearest in time on either side, within 2 ms.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
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

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct BpfSample {
  uint64_t time_ns, ip, stack_id;
};
struct PerfSample {
  uint64_t time_ns;
  event::Task task;
  uint64_t ip;
  std::vector<uint64_t> frames;
  profile::StackEnd end;
};
struct Walked {
  std::vector<uint64_t> frames;
  event::WalkEnd end;
};

// Perf's own samples of the same events, as bytes in time order.
class PerfRings {
 public:
  Result<void> add(int fd, const perf_event_attr& attr) {
    rings_.push_back(TRY(collect::Ring::map(collect::kernel_perf_api(), fd, kRingPages)));
    decoder.add_layout(event::layout_of(attr, 0), {});
    return {};
  }
  void read() {
    for (collect::Ring& ring : rings_) {
      ring.look_at_head();
      while (auto record = ring.next()) records.emplace(decoder.time_of_record(*record), std::vector(record->begin(), record->end()));
      ring.release(ring.cursor());
    }
  }
  event::RecordDecoder decoder;
  std::multimap<uint64_t, std::vector<std::byte>> records;

 private:
  std::vector<collect::Ring> rings_;
};

// What the collector delivers; between its events perf's samples are unwound with the mappings of their time.
class Sink : public event::EventSink {
 public:
  explicit Sink(PerfRings& rings) : rings_(rings) {}

  Result<void> begin(const event::SessionInfo&) override { return {}; }
  Result<void> finish(uint64_t) override { return on_round(UINT64_MAX); }
  Result<void> on_round(uint64_t time_ns) override {
    while (!rings_.records.empty() && rings_.records.begin()->first <= time_ns) {
      unwind(rings_.records.begin()->second);
      rings_.records.erase(rings_.records.begin());
    }
    return {};
  }
  Result<void> on_event(const event::Event& event) override {
    TRY(on_round(event::time_of(event)));
    std::visit([this](const auto& e) { on(e); }, event);
    return {};
  }

  std::map<int32_t, std::vector<BpfSample>> samples;  // by thread, in time order
  std::vector<PerfSample> perf;
  std::unordered_map<uint64_t, Walked> stacks;
  uint64_t snapshots = 0, lost = 0;

 private:
  void on(const event::Sample& sample) {
    // Those unwound in user space take part in the search: perf's twin must not be given to a neighbour.
    if (sample.snapshot) snapshots++;
    samples[sample.task.tid].push_back({sample.time_ns, sample.ip, sample.stack_id});
  }
  void on(const event::StackDef& def) { stacks[def.id] = {{def.user_chain.begin(), def.user_chain.end()}, def.user_end}; }
  void on(const event::Mmap& mmap) { tracker_.apply(mmap); }
  void on(const event::Comm& comm) { tracker_.apply(comm); }
  void on(const event::Fork& fork) { tracker_.apply(fork); }
  void on(const event::Exit& exit) { tracker_.apply(exit); }
  void on(const auto&) {}

  void unwind(std::span<const std::byte> record) {
    event::Event event;
    if (rings_.decoder.decode(record, event) != event::DecodeOutcome::kEvent) return;
    if (const auto* lost_event = std::get_if<event::Lost>(&event)) lost += lost_event->count;
    const auto* sample = std::get_if<event::Sample>(&event);
    if (!sample) return;
    pipeline::UserStack stack = reader_.read(*sample, tracker_.process(sample->task.pid, sample->time_ns));
    PerfSample& kept = perf.emplace_back(PerfSample{sample->time_ns, sample->task, sample->ip, {}, stack.end});
    for (const unwind::Frame& frame : stack.frames) kept.frames.push_back(frame.pc);
  }

  PerfRings& rings_;
  Diagnostics diagnostics_;
  pipeline::Options options_;
  space::Tracker tracker_;
  pipeline::Modules modules_{diagnostics_, options_.sources, false};
  pipeline::UserStackReader reader_{event::Arch::kX86_64, options_, modules_, tracker_, diagnostics_};
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
void compare(const Walked& bpf, const PerfSample& perf, Counts& counts, bool verbose) {
  bool bpf_done = bpf.end == event::WalkEnd::kComplete, perf_done = perf.end == profile::StackEnd::kComplete;
  counts.pairs++;
  uint64_t differed = counts.differ;
  counts.bpf_complete += bpf_done;
  counts.perf_complete += perf_done;
  size_t common = std::min(bpf.frames.size(), perf.frames.size()), same = 0;
  while (same < common && bpf.frames[same] == perf.frames[same]) same++;
  if (same == common && bpf.frames.size() == perf.frames.size()) counts.equal++;
  else if (same == common && !perf_done && bpf.frames.size() > common) counts.bpf_longer++;
  else if (same == common && !bpf_done && perf.frames.size() > common) counts.bpf_shorter++;
  else counts.differ++;
  if (verbose && counts.differ > differed) fmt::print("differ: ");
  bool is_wrong = same != common || (bpf.frames.size() != perf.frames.size());
  if (!verbose || !is_wrong) return;
  fmt::print("tid {} time {} ip {:x}: {} of {} (bpf, end {}) and {} (perf, end {})\n", perf.task.tid, perf.time_ns, perf.ip, same,
             bpf.frames.size(), static_cast<int>(bpf.end), perf.frames.size(), static_cast<int>(perf.end));
  for (size_t i = same > 2 ? same - 2 : 0; i < std::min(same + 3, std::max(bpf.frames.size(), perf.frames.size())); i++)
    fmt::print("  {:2} bpf {:x} perf {:x}\n", i, i < bpf.frames.size() ? bpf.frames[i] : 0, i < perf.frames.size() ? perf.frames[i] : 0);
}

Counts compare_all(const Sink& sink, bool verbose) {
  Counts counts;
  for (const PerfSample& sample : sink.perf) {
    auto of_thread = sink.samples.find(sample.task.tid);
    if (of_thread == sink.samples.end()) continue;
    const BpfSample* bpf = nearest(of_thread->second, sample);
    auto walked = bpf ? sink.stacks.find(bpf->stack_id) : sink.stacks.end();
    if (walked == sink.stacks.end()) counts.unpaired++;
    else if (walked->second.end != event::WalkEnd::kNoRegisters) compare(walked->second, sample, counts, verbose);
  }
  return counts;
}

Result<int> run(collect::BpfOptions options, uint64_t end_after_ns, bool verbose) {
  PerfRings rings;
  Sink sink(rings);
  options.perf.freq_hz = 999;
  options.perf_tap = [&](int fd, const perf_event_attr& attr) { return rings.add(fd, attr); };
  auto collector = TRY(collect::BpfCollector::make(options));
  TRY(collector->open(sink));
  TRY(collector->start());
  for (uint64_t begin = now_ns(); now_ns() - begin < end_after_ns;) {
    rings.read();
    if (!TRY(collector->poll(10))) break;
  }
  rings.read();
  TRY(collector->close());
  Counts counts = compare_all(sink, verbose);
  fmt::print("pairs {} equal {} bpf-longer {} bpf-shorter {} differ {} unpaired {} snapshots {} bpf-complete {} perf-complete {} perf-lost {}\n",
             counts.pairs, counts.equal, counts.bpf_longer, counts.bpf_shorter, counts.differ, counts.unpaired, sink.snapshots,
             counts.bpf_complete, counts.perf_complete, sink.lost);
  for (const auto& [name, entry] : collector->diagnostics().entries())
    if (verbose) fmt::print("{} {}: {} ({})\n", name, entry.count, entry.description, entry.example);
  return counts.differ ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  collect::BpfOptions options;
  bool verbose = false;
  int at = 1;
  for (; at < argc; at++) {
    if (strcmp(argv[at], "-v") == 0) verbose = true;
    else if (strcmp(argv[at], "--for-5.10") == 0) options.variant = collect::SamplerVariant::kFor510;
    else break;
  }
  std::vector<std::string> words(argv + at, argv + argc);
  if (words.empty()) {
    fmt::print(stderr, "usage: dual_capture [-v] [--for-5.10] PROGRAM ARGS... | -a SECONDS\n");
    return 2;
  }
  collect::PerfTarget& target = options.perf.target;
  target.all_cpus = words[0] == "-a";
  uint64_t end_after_ns = target.all_cpus && words.size() > 1 ? strtoull(words[1].c_str(), nullptr, 10) * 1'000'000'000 : UINT64_MAX;
  if (!target.all_cpus) target.command = std::move(words);
  auto status = run(std::move(options), end_after_ns, verbose);
  if (status) return *status;
  fmt::print(stderr, "dual_capture: {}\n", status.error().message);
  return 77;
}
