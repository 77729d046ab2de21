// event_stats [--off-cpu] [--count-only] [--for-5.10] PROGRAM ARGS... | -a SECONDS: records with the BPF collector and prints
// what came as one line of JSON, for live.bpf: samples, stacks by how they end, and each thread's switches and time off the
// CPU. --for-5.10: by the programs for older kernels.
#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <map>
#include <set>
#include <unordered_map>

#include "collect/bpf/bpf_collector.h"

namespace {

using namespace cprof;

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct ThreadStats {
  uint64_t outs = 0, ins = 0, preempted = 0, with_stack = 0, complete = 0, snapshots = 0, woken = 0, woken_by_thread = 0, off_ns = 0, runnable_ns = 0;
  uint64_t out_ns = 0;
  bool has_snapshot = false;  // which is the stack of the switch-out that follows
  std::set<int32_t> wakers;
};

class Stats : public event::EventSink {
 public:
  Result<void> begin(const event::SessionInfo& info) override {
    for (const event::Metric& metric : info.metrics) is_switch_stacks.push_back(metric.is_switch_stacks);
    return {};
  }
  Result<void> finish(uint64_t) override { return {}; }
  Result<void> on_event(const event::Event& event) override {
    uint64_t time = event::time_of(event);
    if (time < last_ns && !std::holds_alternative<event::StackDef>(event)) disorder++;
    last_ns = std::max(last_ns, time);
    std::visit([this](const auto& e) { on(e); }, event);
    return {};
  }
  void print() const {
    fmt::print("{{\"samples\": {}, \"weight\": {}, \"snapshots\": {}, \"stacks\": {}, \"counts\": {}, \"counted\": {}, \"undefined\": {}, "
               "\"disorder\": {}, \"kernel_frames\": {}, \"complete\": {}, \"walked\": {}, \"threads\": [",
               samples, weight, snapshots, ends.size(), counts, counted, undefined, disorder, kernel_frames, complete, walked);
    const char* separator = "";
    for (const auto& [tid, t] : threads) {
      fmt::print("{}{{\"tid\": {}, \"outs\": {}, \"ins\": {}, \"preempted\": {}, \"with_stack\": {}, \"complete\": {}, \"snapshots\": {}, \"woken\": {}, "
                 "\"woken_by_thread\": {}, \"off_ns\": {}, \"runnable_ns\": {}, \"wakers\": [{}]}}",
                 separator, tid, t.outs, t.ins, t.preempted, t.with_stack, t.complete, t.snapshots, t.woken, t.woken_by_thread, t.off_ns,
                 t.runnable_ns, fmt::join(t.wakers, ", "));
      separator = ", ";
    }
    fmt::print("]");
  }

  uint64_t samples = 0, weight = 0, snapshots = 0, counts = 0, counted = 0, undefined = 0, disorder = 0, kernel_frames = 0, complete = 0, walked = 0;

 private:
  bool is_complete(uint64_t id) {
    auto it = ends.find(id);
    if (it == ends.end()) undefined++;
    return it != ends.end() && it->second == event::WalkEnd::kComplete;
  }
  void note_stack(uint64_t id, uint64_t times) {
    if (ends.contains(id) && ends[id] == event::WalkEnd::kNoRegisters) return;
    walked += times;
    if (is_complete(id)) complete += times;
  }
  void on(const event::Sample& sample) {
    if (is_switch_stacks.at(sample.metric)) {
      threads[sample.task.tid].has_snapshot = true;
      return;
    }
    samples++;
    weight += sample.period;
    if (sample.snapshot) snapshots++;
    else note_stack(sample.stack_id, 1);
  }
  void on(const event::Count& count) {
    counts++;
    counted += count.samples;
    weight += count.weight;
    note_stack(count.stack_id, count.samples);
  }
  void on(const event::StackDef& def) {
    ends[def.id] = def.user_end;
    kernel_frames += def.kernel_chain.size();
  }
  void on(const event::SwitchOut& out) {
    ThreadStats& t = threads[out.task.tid];
    t.outs++;
    t.preempted += out.preempted;
    t.with_stack += out.stack_id != 0 || t.has_snapshot;
    t.snapshots += t.has_snapshot;
    t.has_snapshot = false;
    t.complete += out.stack_id && is_complete(out.stack_id);
    t.out_ns = out.time_ns;
  }
  void on(const event::SwitchIn& in) {
    ThreadStats& t = threads[in.task.tid];
    t.ins++;
    if (t.out_ns) t.off_ns += in.time_ns - t.out_ns;
    t.woken += in.woken_ns != 0;
    if (in.woken_ns) t.runnable_ns += in.time_ns - in.woken_ns;
    t.woken_by_thread += in.waker.tid != 0;
    if (in.waker.tid) t.wakers.insert(in.waker.tid);
  }
  void on(const auto&) {}

  std::vector<bool> is_switch_stacks;  // of each metric
  std::unordered_map<uint64_t, event::WalkEnd> ends;
  std::map<int32_t, ThreadStats> threads;
  uint64_t last_ns = 0;
};

Result<int> run(collect::BpfOptions options, uint64_t end_after_ns) {
  Stats stats;
  auto collector = TRY(collect::BpfCollector::make(std::move(options)));
  TRY(collector->open(stats));
  TRY(collector->start());
  for (uint64_t begin = now_ns(); now_ns() - begin < end_after_ns;)
    if (!TRY(collector->poll(100))) break;
  TRY(collector->close());
  stats.print();
  fmt::print(", \"diagnostics\": {{");
  const char* separator = "";
  for (const auto& [name, entry] : collector->diagnostics().entries()) {
    fmt::print("{}\"{}\": {}", separator, name, entry.count);
    separator = ", ";
  }
  fmt::print("}}}}\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  collect::BpfOptions options;
  int at = 1;
  for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
    if (strcmp(argv[at], "--off-cpu") == 0) options.off_cpu = true;
    else if (strcmp(argv[at], "--count-only") == 0) options.count_only = true;
    else if (strcmp(argv[at], "--for-5.10") == 0) options.variant = collect::SamplerVariant::kFor510;
    else break;
  }
  std::vector<std::string> words(argv + at, argv + argc);
  if (words.empty() || words[0].starts_with("--")) {
    fmt::print(stderr, "usage: event_stats [--off-cpu] [--count-only] [--for-5.10] PROGRAM ARGS... | -a SECONDS\n");
    return 2;
  }
  options.perf.target.all_cpus = words[0] == "-a";
  uint64_t end_after_ns = words[0] == "-a" && words.size() > 1 ? strtoull(words[1].c_str(), nullptr, 10) * 1'000'000'000 : UINT64_MAX;
  if (words[0] != "-a") options.perf.target.command = std::move(words);
  auto status = run(std::move(options), end_after_ns);
  if (status) return *status;
  fmt::print(stderr, "event_stats: {}\n", status.error().message);
  return 77;
}
