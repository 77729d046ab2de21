#include "pipeline/pipeline.h"

#include <unordered_map>

#include "pipeline/counts.h"
#include "pipeline/modules.h"
#include "pipeline/namer.h"
#include "pipeline/stack_defs.h"
#include "pipeline/stack_interner.h"
#include "pipeline/user_stack.h"
#include "profile/builder.h"
#include "space/tracker.h"

namespace cprof::pipeline {
namespace {

class ProcLiveAccess : public LiveAccess {
 public:
  Result<std::vector<object::MapsEntry>> read_maps(int32_t pid) override { return object::read_maps(pid); }
  size_t read_memory(int32_t pid, uint64_t address, std::span<std::byte> into) override {
    return object::read_process_memory(pid, address, into).value_or(0);
  }
};

struct ThreadState {
  profile::ThreadId row;
  StackCache stack;
  uint64_t on_cpu_since = 0;
};

}  // namespace

std::unique_ptr<LiveAccess> make_live_access() { return std::make_unique<ProcLiveAccess>(); }

struct Pipeline::Impl {
  explicit Impl(Options given)
      : options(std::move(given)), modules(diagnostics()), interner(builder, modules, options.kallsyms_path, diagnostics()),
        stack_defs(diagnostics()), counted(builder, metrics) {}

  Diagnostics& diagnostics() { return builder.profile().diagnostics; }
  ThreadState& state_of(const event::Task& task, uint64_t time_ns);
  profile::ThreadId row_of(space::Thread& thread, ThreadState& state);
  Result<void> forward(const event::Event& event);
  Result<void> journal_what_was_asked(const event::Sample& sample);
  Result<void> journal_mappings();
  bool knows_metric(uint32_t metric);
  KnownStack stack_of(const event::Sample& sample, space::Process& process, StackCache& cache);
  void describe_session(const event::SessionInfo& info);
  void finish_rows();

  void on(const event::Sample& sample);
  void on(const event::StackMemory& memory) { stacks->add_memory(memory); }
  void on(const event::Mmap& mmap) { tracker.apply(mmap); }
  void on(const event::Comm& comm) { tracker.apply(comm); }
  void on(const event::Fork& fork) { tracker.apply(fork); }
  void on(const event::Exit& exit);
  void on(const event::SwitchIn& in);
  void on(const event::SwitchOut& out);
  void on(const event::Lost& lost);
  void on(const event::Throttle& throttle);
  void on(const event::StackDef& def);
  void on(const event::Count& count);
  void on(const event::Wakeup&) {}

  Options options;
  profile::ProfileBuilder builder;
  space::Tracker tracker;
  Modules modules;
  StackInterner interner;
  std::unique_ptr<UserStackReader> stacks;
  std::unordered_map<const space::Thread*, ThreadState> threads;
  std::vector<std::pair<const space::Thread*, profile::ThreadId>> rows;
  std::unordered_map<uint32_t, profile::ProcessId> process_rows;
  std::vector<profile::MetricId> metrics;
  StackDefs stack_defs;
  StackCache defined_stack;
  Counts counted;
  StackCounts counts;
};

Pipeline::Pipeline(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Pipeline::~Pipeline() = default;

Result<void> Pipeline::begin(const event::SessionInfo& info) {
  impl_->describe_session(info);
  impl_->stacks = std::make_unique<UserStackReader>(info.arch, impl_->options, impl_->modules, impl_->tracker, impl_->diagnostics());
  if (impl_->options.journal) return impl_->options.journal->begin(info);
  return {};
}

void Pipeline::Impl::describe_session(const event::SessionInfo& info) {
  profile::RunInfo& run = builder.profile().run;
  run.tool = "cprof " CPROF_VERSION;
  run.command = info.command;
  run.hostname = info.hostname;
  run.kernel_release = info.kernel_release;
  run.start_ns = info.start_ns;
  run.start_realtime_ns = info.start_realtime_ns;
  run.cpus = info.cpus_online;
  run.has_switches = info.has_switches;
  for (const event::Metric& m : info.metrics) {
    uint64_t period = m.period ? m.period : m.is_time && m.freq_hz ? 1'000'000'000 / m.freq_hz : 0;
    metrics.push_back(builder.add_metric(m.name, m.unit, period, m.is_time));
    if (m.is_time && !run.sampling_interval_ns) run.sampling_interval_ns = period;
    if (!m.is_time && m.freq_hz && !run.sampling_interval_ns) run.sampling_interval_ns = 1'000'000'000 / m.freq_hz;
  }
  if (!info.has_kernel_stacks && !info.kernel_stacks_missing.empty())
    diagnostics().add("kernel_stacks_missing", Severity::kNotice, "no kernel stacks: " + info.kernel_stacks_missing);
}

Result<void> Pipeline::on_event(const event::Event& event) {
  std::visit([this](const auto& e) { impl_->on(e); }, event);
  return impl_->forward(event);
}

Result<void> Pipeline::Impl::forward(const event::Event& event) {
  if (!options.journal) return {};
  if (const auto* sample = std::get_if<event::Sample>(&event)) TRY(journal_what_was_asked(*sample));
  if (std::holds_alternative<event::StackDef>(event)) TRY(journal_mappings());
  return options.journal->on_event(event);
}

Result<void> Pipeline::Impl::journal_mappings() {
  for (const event::Mmap& mmap : stacks->learned_mappings()) TRY(options.journal->on_event(mmap));
  return {};
}

Result<void> Pipeline::Impl::journal_what_was_asked(const event::Sample& sample) {
  if (sample.stack_id) return {};
  TRY(journal_mappings());
  for (const SnapshotMemory::Piece& piece : stacks->live_pieces())
    TRY(options.journal->on_event(event::StackMemory{sample.time_ns, sample.task, piece.address, piece.bytes}));
  return {};
}

Result<void> Pipeline::on_round(uint64_t time_ns) {
  impl_->stack_defs.forget_ended(time_ns);
  if (impl_->options.journal) return impl_->options.journal->on_round(time_ns);
  return {};
}

ThreadState& Pipeline::Impl::state_of(const event::Task& task, uint64_t time_ns) {
  space::Thread& thread = tracker.thread(task, time_ns);
  return threads[&thread];
}

profile::ThreadId Pipeline::Impl::row_of(space::Thread& thread, ThreadState& state) {
  if (state.row.valid()) return state.row;
  space::Process& process = *thread.process;
  auto [it, is_new] = process_rows.try_emplace(process.serial);
  if (is_new) it->second = builder.add_process(process.pid, process.name, process.start_ns);
  state.row = builder.add_thread(it->second, thread.tid, thread.name, thread.start_ns);
  rows.emplace_back(&thread, state.row);
  return state.row;
}

bool Pipeline::Impl::knows_metric(uint32_t metric) {
  if (metric < metrics.size()) return true;
  diagnostics().add("samples_of_unknown_event", Severity::kError, "samples whose event the recording does not describe");
  return false;
}

KnownStack Pipeline::Impl::stack_of(const event::Sample& sample, space::Process& process, StackCache& cache) {
  if (sample.stack_id) return stack_defs.find(process, sample.stack_id);
  UserStack user = stacks->read(sample, process);
  if (user.had_registers) {
    counts.unwound++;
    if (user.end == profile::StackEnd::kTruncatedSnapshot) counts.truncated++;
    else if (stacks->nearly_cut()) counts.nearly_cut++;
  }
  if (stacks->used_live_memory()) counts.live++;
  return {interner.intern(process, cache, user.frames, sample.kernel_chain), user.end};
}

void Pipeline::Impl::on(const event::Sample& sample) {
  space::Thread& thread = tracker.thread(sample.task, sample.time_ns);
  ThreadState& state = threads[&thread];
  counts.samples++;
  KnownStack stack = stack_of(sample, *thread.process, state.stack);
  profile::Sample row;
  row.time_ns = sample.time_ns;
  row.weight = static_cast<int64_t>(sample.period);
  row.thread = row_of(thread, state);
  row.site = stack.site;
  row.cpu = sample.cpu;
  row.end = stack.end;
  row.in_kernel = sample.in_kernel;
  if (!knows_metric(sample.metric)) return;
  row.metric = metrics[sample.metric];
  builder.add_sample(row);
}

void Pipeline::Impl::on(const event::StackDef& def) {
  space::Process& process = tracker.process(def.task.pid, def.time_ns);
  UserStack user = stacks->read_walked(def, process);
  stack_defs.define(process, def.id, {interner.intern(process, defined_stack, user.frames, def.kernel_chain), user.end});
}

void Pipeline::Impl::on(const event::Count& count) {
  space::Thread& thread = tracker.thread(count.task, count.time_ns);
  if (!knows_metric(count.metric)) return;
  counts.samples += count.samples;
  KnownStack stack = count.stack_id ? stack_defs.find(*thread.process, count.stack_id) : KnownStack{};
  counted.add(count, row_of(thread, threads[&thread]), stack);
}

void Pipeline::Impl::on(const event::Exit& exit) {
  tracker.apply(exit);
  space::Process& process = tracker.process(exit.task.pid, exit.time_ns);
  if (!process.end_ns) return;
  modules.forget(process);
  interner.forget(process);
  stack_defs.process_ended(process, exit.time_ns);
}

void Pipeline::Impl::on(const event::SwitchIn& in) {
  if (in.task.pid == 0) return;
  state_of(in.task, in.time_ns).on_cpu_since = in.time_ns;
}

void Pipeline::Impl::on(const event::SwitchOut& out) {
  if (out.task.pid == 0) return;
  space::Thread& thread = tracker.thread(out.task, out.time_ns);
  ThreadState& state = threads[&thread];
  uint64_t since = state.on_cpu_since ? state.on_cpu_since : std::max(thread.start_ns, builder.profile().run.start_ns);
  state.on_cpu_since = 0;
  if (out.time_ns < since) {
    diagnostics().add("clock_went_back", Severity::kError, "intervals on a CPU that end before they start");
    return;
  }
  builder.profile().on_cpu.push_back({row_of(thread, state), since, out.time_ns, out.cpu, out.preempted});
}

void Pipeline::Impl::on(const event::Lost& lost) {
  stacks->note_lost(lost.time_ns);
  if (lost.kind == event::LostKind::kSamples)
    diagnostics().add("lost_samples", Severity::kDataLoss, "samples lost in the kernel's ring; lower -F", lost.count);
  else
    diagnostics().add("lost_records", Severity::kDataLoss,
                      "records lost because the kernel's ring was full; lower -F or --stack-size", lost.count);
}

void Pipeline::Impl::on(const event::Throttle& throttle) {
  if (throttle.on)
    diagnostics().add("throttled", Severity::kNotice,
                      "times that the kernel throttled sampling; lower -F or raise kernel.perf_event_max_sample_rate");
}

Result<void> Pipeline::finish(uint64_t end_ns) {
  Impl& impl = *impl_;
  impl.builder.profile().run.end_ns = end_ns;
  impl.counted.finish();
  impl.finish_rows();
  impl.modules.report(impl.diagnostics());
  if (impl.options.symbolize) {
    Namer namer(impl.options, impl.builder, impl.modules, impl.interner, impl.diagnostics());
    namer.name_all();
  }
  if (impl.options.journal) return impl.options.journal->finish(end_ns);
  return {};
}

// Names and ends as they were last known.
void Pipeline::Impl::finish_rows() {
  profile::Profile& profile = builder.profile();
  for (const auto& [thread, id] : rows) {
    profile::Thread& row = profile.threads[id.index()];
    row.name = builder.intern(thread->name);
    row.end_ns = thread->end_ns;
  }
  for (const auto& process : tracker.all()) {
    auto it = process_rows.find(process->serial);
    if (it == process_rows.end()) continue;
    profile::Process& row = profile.processes[it->second.index()];
    row.name = builder.intern(process->name);
    row.end_ns = process->end_ns;
  }
  for (auto& [thread, state] : threads) {
    if (!state.on_cpu_since) continue;
    uint64_t end = thread->end_ns ? thread->end_ns : profile.run.end_ns;
    if (end > state.on_cpu_since && state.row.valid())
      profile.on_cpu.push_back({state.row, state.on_cpu_since, end, 0, false});
  }
}

Pipeline::StackCounts Pipeline::stack_counts() const { return impl_->counts; }

profile::Profile Pipeline::take() { return impl_->builder.take(); }

}  // namespace cprof::pipeline
