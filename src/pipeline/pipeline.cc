#include "pipeline/pipeline.h"

#include <sys/mman.h>

#include <unordered_map>
#include <unordered_set>

#include "object/cgroups.h"
#include "pipeline/counts.h"
#include "pipeline/modules.h"
#include "pipeline/namer.h"
#include "pipeline/profile_namer.h"
#include "pipeline/stack_defs.h"
#include "pipeline/stack_interner.h"
#include "pipeline/switch_tracker.h"
#include "pipeline/user_stack.h"
#include "pipeline/wait_classifier.h"
#include "profile/builder.h"
#include "profile/keep.h"
#include "space/tracker.h"

namespace cprof::pipeline {
namespace {

class ProcLiveAccess : public LiveAccess {
 public:
  Result<std::vector<object::MapsEntry>> read_maps(int32_t pid) override { return object::read_maps(pid); }
  size_t read_memory(int32_t pid, uint64_t address, std::span<std::byte> into) override {
    return object::read_process_memory(pid, address, into).value_or(0);
  }
  Result<std::string> read_cgroup(int32_t pid) override { return object::read_cgroup(pid); }
};

struct ThreadState {
  profile::ThreadId row;
  StackCache stack;
};

}  // namespace

std::unique_ptr<LiveAccess> make_live_access() { return std::make_unique<ProcLiveAccess>(); }

struct Pipeline::Impl {
  explicit Impl(Options given)
      : options(std::move(given)), modules(diagnostics(), options.sources, !options.live), interner(builder, modules, options, tracker.kernel(), diagnostics()),
        switches(builder), stack_defs(diagnostics()), counted(builder, metrics) {}

  Diagnostics& diagnostics() { return builder.profile().diagnostics; }
  SwitchedThread switched(const event::Task& task, uint64_t time_ns);
  void on_switch_stack(const event::Sample& sample);
  profile::ThreadId row_of(space::Thread& thread, ThreadState& state);
  void learn_cgroup(space::Process& process, uint64_t time_ns);
  Result<void> forward(const event::Event& event);
  Result<void> journal_what_was_asked(const event::Sample& sample);
  Result<void> journal_cgroup();
  Result<void> journal_kernel_symbols(uint64_t time_ns);
  Result<void> journal_mappings();
  Result<void> journal_mapping(event::Mmap mmap);
  bool knows_metric(uint32_t metric);
  KnownStack stack_of(const event::Sample& sample, space::Process& process, StackCache& cache);
  void describe_session(const event::SessionInfo& info);
  void forget_before(uint64_t time_ns);
  void keep_window(uint64_t now_ns);
  void forget_stacks(uint64_t now_ns);
  space::Thread& counted_thread(const event::Count& count);
  void renumber_threads(const profile::Renumbering& map);
  void forget_ended_threads(uint64_t before_ns);
  void finish_rows();

  void on(const event::Sample& sample);
  void on(const event::StackMemory& memory) { stacks->add_memory(memory); }
  void on(const event::Mmap& mmap) { tracker.apply(mmap); }
  void on(const event::Comm& comm) { tracker.apply(comm); }
  void on(const event::Fork& fork) {
    tracker.apply(fork);
    switches.on_fork(fork);
  }
  void on(const event::Exit& exit);
  void on(const event::SwitchIn& in);
  void on(const event::SwitchOut& out);
  void on(const event::Lost& lost);
  void on(const event::Throttle& throttle);
  void on(const event::StackDef& def);
  void on(const event::Count& count);
  void on(const event::Wakeup& wakeup) { switches.on_wakeup(wakeup); }
  void on(const event::Cgroup& cgroup) { tracker.apply(cgroup); }
  void on(const event::KernelSymbol& symbol) { interner.apply(symbol); }

  Options options;
  profile::ProfileBuilder builder;
  space::Tracker tracker;
  Modules modules;
  StackInterner interner;
  SwitchTracker switches;
  std::unique_ptr<UserStackReader> stacks;
  std::unordered_map<const space::Thread*, ThreadState> threads;
  std::vector<std::pair<const space::Thread*, profile::ThreadId>> rows;
  std::unordered_map<uint32_t, profile::ProcessId> process_rows;
  std::vector<profile::MetricId> metrics;  // by the session's index; invalid for what is not one of the profile
  std::vector<bool> is_switch_stacks;      // likewise
  StackDefs stack_defs;
  StackCache defined_stack;
  KnownStack last_stack;
  std::optional<event::Cgroup> learned_cgroup;  // during the event that is being handled
  std::string learned_path;                     // which it views
  Counts counted;
  StackCounts counts;
  uint64_t delivered_until = 0, next_forgetting_ns = 0, stacks_repeat_ns = 0, stacks_forgotten_ns = 0, renumberings = 0;
};

Pipeline::Pipeline(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Pipeline::~Pipeline() = default;

Result<void> Pipeline::begin(const event::SessionInfo& info) {
  impl_->describe_session(info);
  if (!impl_->options.live) impl_->modules.set_surroundings(surroundings_of(info));
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
  run.has_off_cpu = info.has_off_cpu;
  switches.begin(info);
  stacks_repeat_ns = info.stacks_repeat_ns;
  for (const event::Metric& m : info.metrics) {
    is_switch_stacks.push_back(m.is_switch_stacks);
    if (m.is_switch_stacks) {
      metrics.emplace_back();
      continue;
    }
    uint64_t period = m.period ? m.period : m.is_time && m.freq_hz ? 1'000'000'000 / m.freq_hz : 0;
    metrics.push_back(builder.add_metric(m.name, m.unit, period, m.is_time));
    if (m.is_time && !run.sampling_interval_ns) run.sampling_interval_ns = period;
    if (!m.is_time && m.freq_hz && !run.sampling_interval_ns) run.sampling_interval_ns = 1'000'000'000 / m.freq_hz;
  }
  if (info.has_off_cpu) builder.add_metric(profile::kOffCpuMetric, "nanoseconds");
  if (!info.has_kernel_stacks && !info.kernel_stacks_missing.empty())
    diagnostics().add("kernel_stacks_missing", Severity::kNotice, "no kernel stacks: " + info.kernel_stacks_missing);
}

Result<void> Pipeline::on_event(const event::Event& event) {
  std::visit([this](const auto& e) { impl_->on(e); }, event);
  return impl_->forward(event);
}

Result<void> Pipeline::Impl::forward(const event::Event& event) {
  TRY(journal_cgroup());
  TRY(journal_kernel_symbols(event::time_of(event)));
  if (!options.journal) return {};
  if (const auto* sample = std::get_if<event::Sample>(&event)) TRY(journal_what_was_asked(*sample));
  if (std::holds_alternative<event::StackDef>(event)) TRY(journal_mappings());
  if (const auto* mmap = std::get_if<event::Mmap>(&event)) return journal_mapping(*mmap);
  return options.journal->on_event(event);
}

Result<void> Pipeline::Impl::journal_cgroup() {
  const auto learned = std::exchange(learned_cgroup, std::nullopt);
  return learned && options.journal ? options.journal->on_event(*learned) : Result<void>();
}

Result<void> Pipeline::Impl::journal_kernel_symbols(uint64_t time_ns) {
  for (event::KernelSymbol symbol : interner.learned_symbols()) {
    symbol.time_ns = time_ns;
    if (options.journal) TRY(options.journal->on_event(symbol));
  }
  interner.forget_learned();
  return {};
}

Result<void> Pipeline::Impl::journal_mappings() {
  for (const event::Mmap& mmap : stacks->learned_mappings()) TRY(journal_mapping(mmap));
  return {};
}

// With its build-id, by which another machine can tell the file.
Result<void> Pipeline::Impl::journal_mapping(event::Mmap mmap) {
  bool is_code = mmap.protection & PROT_EXEC && mmap.path.starts_with('/') && mmap.file != event::FileId{};
  if (options.live && is_code && mmap.build_id.empty()) mmap.build_id = modules.build_id_of(mmap);
  return options.journal->on_event(mmap);
}

Result<void> Pipeline::Impl::journal_what_was_asked(const event::Sample& sample) {
  if (sample.stack_id || sample.repeats_stack) return {};
  TRY(journal_mappings());
  for (const auto pieces : {stacks->live_code(), stacks->live_pieces()})
    for (const SnapshotMemory::Piece& piece : pieces)
      TRY(options.journal->on_event(event::StackMemory{sample.time_ns, sample.task, piece.address, piece.bytes}));
  return {};
}

Result<void> Pipeline::on_round(uint64_t time_ns) {
  impl_->delivered_until = time_ns;
  impl_->keep_window(time_ns);
  impl_->forget_stacks(time_ns);
  if (impl_->options.journal) return impl_->options.journal->on_round(time_ns);
  return {};
}

SwitchedThread Pipeline::Impl::switched(const event::Task& task, uint64_t time_ns) {
  if (task.tid <= 0) return {};
  space::Thread& thread = tracker.thread(task, time_ns);
  if (thread.end_ns) return {};  // it leaves its CPU for the last time
  learn_cgroup(*thread.process, time_ns);
  return {task.tid, row_of(thread, threads[&thread]), std::max(thread.start_ns, builder.profile().run.start_ns)};
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

// Once a process and program, when it is first met. Of one that is gone by then its parent tells, which is in the same group
// but for whoever starts containers.
void Pipeline::Impl::learn_cgroup(space::Process& process, uint64_t time_ns) {
  if (process.is_cgroup_known || !options.live) return;
  process.is_cgroup_known = true;
  auto path = options.live->read_cgroup(process.access_tid);
  if (!path && process.cgroup.empty() && process.parent_pid) path = options.live->read_cgroup(process.parent_pid);
  if (!path || *path == process.cgroup) return;
  learned_path = std::move(*path);
  learned_cgroup = event::Cgroup{time_ns, {process.pid, process.pid}, learned_path};
  tracker.apply(*learned_cgroup);
}

bool Pipeline::Impl::knows_metric(uint32_t metric) {
  if (metric < metrics.size()) return true;
  diagnostics().add("samples_of_unknown_event", Severity::kError, "samples whose event the recording does not describe");
  return false;
}

KnownStack Pipeline::Impl::stack_of(const event::Sample& sample, space::Process& process, StackCache& cache) {
  if (sample.repeats_stack) return last_stack;
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
  if (sample.metric < is_switch_stacks.size() && is_switch_stacks[sample.metric]) return on_switch_stack(sample);
  space::Thread& thread = tracker.thread(sample.task, sample.time_ns);
  ThreadState& state = threads[&thread];
  counts.samples++;
  KnownStack stack = last_stack = stack_of(sample, *thread.process, state.stack);
  learn_cgroup(*thread.process, sample.time_ns);
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
  learn_cgroup(process, def.time_ns);
  stack_defs.define(process, def.id, {interner.intern(process, defined_stack, user.frames, def.kernel_chain), user.end}, def.time_ns);
}

// Counts come late: the pid may be another process's by now.
space::Thread& Pipeline::Impl::counted_thread(const event::Count& count) {
  space::Process& current = tracker.process(count.task.pid, count.time_ns);
  auto serial = count.stack_id ? stack_defs.other_owner(current, count.stack_id) : std::nullopt;
  if (serial)
    for (const auto& process : tracker.all())
      if (auto thread = process->threads.find(count.task.tid); process->serial == *serial && thread != process->threads.end())
        return *thread->second;
  return tracker.thread(count.task, count.time_ns);
}

void Pipeline::Impl::on(const event::Count& count) {
  space::Thread& thread = counted_thread(count);
  learn_cgroup(*thread.process, count.time_ns);
  if (!knows_metric(count.metric)) return;
  counts.samples += count.samples;
  KnownStack stack = count.stack_id ? stack_defs.find(*thread.process, count.stack_id) : KnownStack{};
  counted.add(count, row_of(thread, threads[&thread]), stack);
}

// Not a sample of the profile: it tells where the thread is that leaves its CPU next.
void Pipeline::Impl::on_switch_stack(const event::Sample& sample) {
  const SwitchedThread who = switched(sample.task, sample.time_ns);
  space::Thread& thread = tracker.thread(sample.task, sample.time_ns);
  UserStack user = stacks->read(sample, *thread.process);
  if (who.tid == 0) return;
  WaitStack stack{.end = user.end, .period = sample.period};
  stack.site = interner.intern(*thread.process, threads[&thread].stack, user.frames, sample.kernel_chain);
  if (user.end == profile::StackEnd::kTruncatedSnapshot)
    diagnostics().add("off_cpu_stacks_cut", Severity::kNotice, "stacks of waits that go on above what was copied");
  switches.on_stack(who, stack);
}

void Pipeline::Impl::on(const event::Exit& exit) {
  switches.on_exit(exit);
  tracker.apply(exit);
  space::Process& process = tracker.process(exit.task.pid, exit.time_ns);
  if (!process.end_ns) return;
  modules.forget(process);
  interner.forget(process);
  stack_defs.process_ended(process, exit.time_ns);
}

void Pipeline::Impl::on(const event::SwitchIn& in) {
  if (SwitchedThread who = switched(in.task, in.time_ns); who.tid) switches.on_in(who, in);
}

void Pipeline::Impl::on(const event::SwitchOut& out) {
  SwitchedThread who = switched(out.task, out.time_ns);
  if (!who.tid) return;
  std::optional<WaitStack> stack;
  if (out.stack_id) {
    KnownStack known = stack_defs.find(*tracker.thread(out.task, out.time_ns).process, out.stack_id);
    stack = WaitStack{.site = known.site, .end = known.end};
  }
  switches.on_out(who, out, stack);
}

void Pipeline::Impl::on(const event::Lost& lost) {
  stacks->note_lost(lost.time_ns);
  switches.on_lost(lost.time_ns);
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
  impl.next_forgetting_ns = 0;
  impl.keep_window(end_ns);
  impl.builder.profile().run.end_ns = end_ns;
  impl.builder.profile().run.is_unfinished = false;
  impl.switches.finish(end_ns);
  impl.counted.finish();
  impl.finish_rows();
  classify_waits(impl.builder.profile(), impl.interner.kernel_symbols());
  impl.modules.report(impl.diagnostics());
  if (impl.options.symbolize) {
    Namer namer(impl.options, impl.builder, impl.modules, impl.interner, impl.diagnostics());
    namer.name_all();
  } else if (impl.options.live && impl.interner.has_kernel_locations()) {
    note_boot(impl.builder.profile().run);
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
    row.cgroup = builder.intern(process->cgroup);
    row.end_ns = process->end_ns;
  }
}

// Rows get new numbers, and all that names rows by number follows.
void Pipeline::Impl::forget_before(uint64_t time_ns) {
  renumberings++;
  std::vector<profile::CallSiteId> defined;
  auto note = [&](profile::CallSiteId site) { defined.push_back(site); };
  stack_defs.for_each_site(note);
  switches.for_each_site(note);
  profile::Renumbering map = profile::keep_since(builder, time_ns, defined);
  interner.renumber(map);
  stack_defs.renumber([&](profile::CallSiteId site) { return map.sites[site.index()]; });
  switches.renumber(map);
  renumber_threads(map);
  constexpr uint64_t kMarginNs = 1'000'000'000;  // what still comes of a thread after its exit
  forget_ended_threads(time_ns > kMarginNs ? time_ns - kMarginNs : 0);
  modules.forget_unmapped();
}

// Each pass costs as much as what is kept: a quarter of the window goes at once.
void Pipeline::Impl::keep_window(uint64_t now_ns) {
  if (!options.window_ns || now_ns < options.window_ns || now_ns < next_forgetting_ns) return;
  next_forgetting_ns = now_ns + options.window_ns / 4;
  forget_before(now_ns - options.window_ns);
}

// A repeated stack may be repeated late, and named a little before.
void Pipeline::Impl::forget_stacks(uint64_t now_ns) {
  constexpr uint64_t kPatience = 2;
  stack_defs.forget_ended(now_ns);
  if (!stacks_repeat_ns || now_ns - stacks_forgotten_ns < stacks_repeat_ns) return;
  stacks_forgotten_ns = now_ns;
  if (now_ns > kPatience * stacks_repeat_ns) stack_defs.forget_defined_before(now_ns - kPatience * stacks_repeat_ns);
}

void Pipeline::Impl::renumber_threads(const profile::Renumbering& map) {
  defined_stack = {};
  if (last_stack.site.valid()) last_stack.site = map.sites[last_stack.site.index()];
  for (auto& [thread, state] : threads) {
    state.stack = {};
    if (state.row.valid()) state.row = map.threads[state.row.index()];
  }
  std::erase_if(rows, [&](auto& row) {
    row.second = map.threads[row.second.index()];
    return !row.second.valid();
  });
  profile::renumber(process_rows, map.processes);
}

void Pipeline::Impl::forget_ended_threads(uint64_t before_ns) {
  std::unordered_set<const space::Thread*> gone;
  tracker.forget_ended(before_ns, [&](const space::Thread& thread) {
    gone.insert(&thread);
    threads.erase(&thread);
  });
  std::erase_if(rows, [&](const auto& row) { return gone.contains(row.first); });
}

void Pipeline::forget_before(uint64_t time_ns) { impl_->forget_before(time_ns); }

void Pipeline::add_note(std::string_view name, std::string_view description) {
  impl_->diagnostics().add(name, Severity::kNotice, description);
}

uint64_t Pipeline::delivered_until() const { return impl_->delivered_until; }

uint64_t Pipeline::renumberings() const { return impl_->renumberings; }

const profile::Profile& Pipeline::so_far() {
  impl_->finish_rows();
  profile::RunInfo& run = impl_->builder.profile().run;
  run.end_ns = std::max(run.start_ns, impl_->delivered_until);
  run.is_unfinished = true;
  return impl_->builder.profile();
}

size_t Pipeline::bytes_held() const {
  const profile::Profile& p = impl_->builder.profile();
  auto bytes = [](const auto& rows) { return rows.size() * sizeof(rows[0]); };
  return bytes(p.samples) + bytes(p.aggregates) + bytes(p.sites) + bytes(p.locations) + bytes(p.on_cpu) + bytes(p.threads);
}

Pipeline::StackCounts Pipeline::stack_counts() const { return impl_->counts; }

profile::Profile Pipeline::take() { return impl_->builder.take(); }

}  // namespace cprof::pipeline
