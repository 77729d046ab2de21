#include "pipeline/switch_tracker.h"

#include <algorithm>

namespace cprof::pipeline {
namespace {

constexpr uint64_t kShortestNs = 1000;       // shorter intervals are dropped and counted
constexpr uint64_t kEarlyWakingNs = 100'000; // a waking this soon before the switch-out may have meant that wait

// The idle task, or one that was already reaped.
bool is_nobody(int32_t tid) { return tid <= 0; }

}  // namespace

void SwitchTracker::begin(const event::SessionInfo& info) {
  has_switches_ = info.has_switches;
  has_off_cpu_ = info.has_off_cpu;
}

SwitchTracker::State& SwitchTracker::state_of(const SwitchedThread& thread) {
  State& state = threads_[thread.tid];
  if (thread.row.valid()) state.row = thread.row;
  if (state.since_ns == 0) state.since_ns = thread.first_ns;
  return state;
}

// A new thread is runnable until it first runs. A tid that is used again is another thread.
void SwitchTracker::on_fork(const event::Fork& fork) {
  if (!has_switches_ || is_nobody(fork.child.tid)) return;
  State& state = threads_[fork.child.tid];
  state = State{.phase = Phase::kOff, .since_ns = fork.time_ns, .is_runnable = true};
}

void SwitchTracker::on_stack(const SwitchedThread& thread, const WaitStack& stack) {
  if (is_nobody(thread.tid)) return;
  is_thinned_ = stack.period > 1;
  state_of(thread).next_stack = stack;
}

void SwitchTracker::on_out(const SwitchedThread& thread, const event::SwitchOut& out,
                           const std::optional<WaitStack>& stack) {
  if (is_nobody(thread.tid)) return;
  State& state = state_of(thread);
  if (state.phase == Phase::kOn || state.phase == Phase::kUnseen)
    end_on_cpu(state, out.time_ns, out.cpu, out.preempted);
  else if (state.phase == Phase::kOff)
    diagnostics().add("switches_unpaired", Severity::kDataLoss,
                      "context switches whose counterpart was lost: what the thread did meanwhile is not known");
  const bool may_mean_this = state.early.time_ns + kEarlyWakingNs >= out.time_ns;
  state.phase = Phase::kOff;
  state.since_ns = out.time_ns;
  state.cpu = out.cpu;
  state.is_runnable = out.preempted;
  state.is_uninterruptible = out.uninterruptible;
  state.had_stack_source = true;
  state.stack = stack ? stack : state.next_stack;
  state.next_stack.reset();
  state.woken = {};
  if (!may_mean_this) state.early = {};
}

void SwitchTracker::on_in(const SwitchedThread& thread, const event::SwitchIn& in) {
  if (is_nobody(thread.tid)) return;
  State& state = state_of(thread);
  if (state.phase == Phase::kOn)
    diagnostics().add("switches_unpaired", Severity::kDataLoss,
                      "context switches whose counterpart was lost: what the thread did meanwhile is not known");
  if (in.woken_ns) state.woken = {in.woken_ns, in.waker};
  // The thread was woken between its decision to sleep and its leaving the CPU; no later waking came.
  if (!state.woken.time_ns && state.early.time_ns) state.woken = {state.since_ns, state.early.waker};
  if (state.phase == Phase::kOff || state.phase == Phase::kUnseen) end_wait(state, in.time_ns, false);
  state.phase = Phase::kOn;
  state.since_ns = in.time_ns;
  state.cpu = in.cpu;
  state.next_stack.reset();
  state.early = state.woken = {};
}

void SwitchTracker::on_wakeup(const event::Wakeup& wakeup) {
  auto found = threads_.find(wakeup.task.tid);
  if (found == threads_.end()) return;
  State& state = found->second;
  if (state.phase == Phase::kOn) state.early = {wakeup.time_ns, wakeup.waker};
  else if (!state.woken.time_ns) state.woken = {wakeup.time_ns, wakeup.waker};
}

void SwitchTracker::on_exit(const event::Exit& exit) {
  auto found = threads_.find(exit.task.tid);
  if (found == threads_.end()) return;
  State& state = found->second;
  if (state.phase == Phase::kOn || state.phase == Phase::kUnseen) end_on_cpu(state, exit.time_ns, state.cpu, false);
  else if (state.phase == Phase::kOff) end_wait(state, exit.time_ns, true);
  threads_.erase(found);
}

void SwitchTracker::finish(uint64_t end_ns) {
  for (auto& [tid, state] : threads_) {
    if (state.phase == Phase::kOn) end_on_cpu(state, std::max(end_ns, state.since_ns), state.cpu, false);
    else if (state.phase == Phase::kOff) end_wait(state, std::max(end_ns, state.since_ns), true);
  }
  threads_.clear();
}

void SwitchTracker::renumber(const profile::Renumbering& map) {
  auto move_site = [&](std::optional<WaitStack>& stack) {
    if (stack && stack->site.valid()) stack->site = map.sites[stack->site.index()];
  };
  for (auto& [tid, state] : threads_) {
    if (state.row.valid()) state.row = map.threads[state.row.index()];
    for (auto* stack : {&state.stack, &state.next_stack, &state.last_preempted, &state.last_waiting}) move_site(*stack);
  }
}

uint64_t SwitchTracker::begin_of(const State& state, uint64_t end_ns) const {
  return std::max(state.since_ns, std::min(builder_.profile().run.start_ns, end_ns));
}

void SwitchTracker::end_on_cpu(const State& state, uint64_t end_ns, uint32_t cpu, bool preempted) {
  if (!state.row.valid() || !has_switches_) return;
  if (end_ns < state.since_ns) {
    diagnostics().add("clock_went_back", Severity::kError, "intervals on or off a CPU that end before they start");
    return;
  }
  uint64_t begin_ns = begin_of(state, end_ns);
  if (end_ns > begin_ns) builder_.profile().on_cpu.push_back({state.row, begin_ns, end_ns, cpu, preempted});
}

void SwitchTracker::end_wait(State& state, uint64_t end_ns, bool is_open) {
  if (!has_off_cpu_ || !state.row.valid()) return;
  if (end_ns < state.since_ns) {
    diagnostics().add("clock_went_back", Severity::kError, "intervals on or off a CPU that end before they start");
    return;
  }
  if (end_ns - state.since_ns < kShortestNs) {
    diagnostics().add("off_cpu_short", Severity::kInfo, "times off the CPU of less than 1 µs, which were left out");
    return;
  }
  profile::OffCpuInterval off{.thread = state.row, .start_ns = begin_of(state, end_ns), .end_ns = end_ns, .cpu = state.cpu,
                              .is_open = is_open, .is_uninterruptible = state.is_uninterruptible};
  set_stack(state, off);
  if (state.is_runnable) off.woken_ns = off.start_ns;
  else if (state.woken.time_ns) off.woken_ns = std::clamp(state.woken.time_ns, off.start_ns, end_ns);
  off.waker = row_of(state.woken.waker);
  if (is_open)
    diagnostics().add("off_cpu_open", Severity::kInfo, "times off the CPU that had not ended when the run or the thread did");
  if (last_lost_ns_ > off.start_ns)
    diagnostics().add("off_cpu_across_losses", Severity::kNotice,
                      "waits during which records were lost: the thread may have run in between");
  builder_.profile().off_cpu.push_back(off);
}

void SwitchTracker::set_stack(State& state, profile::OffCpuInterval& off) {
  std::optional<WaitStack>& last = state.is_runnable ? state.last_preempted : state.last_waiting;
  if (state.stack) last = state.stack;
  else do_without_stack(state, off);
  const std::optional<WaitStack>& stack = off.is_borrowed ? last : state.stack;
  if (!stack) return;
  off.site = stack->site;
  off.end = stack->end;
}

void SwitchTracker::do_without_stack(const State& state, profile::OffCpuInterval& off) {
  if (!state.had_stack_source) {
    if (!state.is_runnable)
      diagnostics().add("off_cpu_began_before", Severity::kInfo,
                        "waits that began before the recording, so that their stacks and classes are not known");
  } else if (is_thinned_) {
    off.is_borrowed = true;
    diagnostics().add("off_cpu_stacks_thinned", Severity::kNotice,
                      "waits without a stack of their own, because there were more than 5,000 switches a second: they "
                      "count for their thread's last one");
  } else {
    diagnostics().add("off_cpu_without_stack", Severity::kNotice, "waits without a stack, which count on [unknown]");
  }
}

profile::ThreadId SwitchTracker::row_of(const event::Task& waker) const {
  auto found = is_nobody(waker.tid) ? threads_.end() : threads_.find(waker.tid);
  return found == threads_.end() ? profile::ThreadId() : found->second.row;
}

}  // namespace cprof::pipeline
