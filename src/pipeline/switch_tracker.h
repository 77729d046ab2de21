// What each thread does between its context switches: a state machine per thread that joins, for every backend, the
// records of leaving and coming back to a CPU, the stack at which it left, and who woke it when. Gives the profile's
// on_cpu intervals, and its off_cpu intervals where they are wanted. The pipeline calls it in the order of time and names
// the threads; classes come later, from the names of the stacks.
//
// What is not known is not made up: where a record is missing, the time up to the next one belongs to neither list.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "event/event.h"
#include "profile/builder.h"
#include "profile/keep.h"

namespace cprof::pipeline {

// Where a thread left its CPU.
struct WaitStack {
  profile::CallSiteId site{};  // invalid: not known
  profile::StackEnd end = profile::StackEnd::kNotUnwound;
  uint64_t period = 1;  // one of so many switches had its stack taken
};

// The thread of an event. first_ns: when it began, or the run when that was later.
struct SwitchedThread {
  int32_t tid = 0;
  profile::ThreadId row{};
  uint64_t first_ns = 0;
};

class SwitchTracker {
 public:
  explicit SwitchTracker(profile::ProfileBuilder& builder) : builder_(builder) {}

  void begin(const event::SessionInfo& info);

  void on_fork(const event::Fork& fork);
  // The stack of the switch-out of this thread that follows.
  void on_stack(const SwitchedThread& thread, const WaitStack& stack);
  void on_out(const SwitchedThread& thread, const event::SwitchOut& out, const std::optional<WaitStack>& stack);
  void on_in(const SwitchedThread& thread, const event::SwitchIn& in);
  void on_wakeup(const event::Wakeup& wakeup);
  void on_exit(const event::Exit& exit);
  void on_lost(uint64_t time_ns) { last_lost_ns_ = time_ns; }
  // What goes on at the end of the run goes on until end_ns.
  void finish(uint64_t end_ns);

  // The profile's rows got new numbers (profile/keep.h); the sites that are visited were kept.
  void renumber(const profile::Renumbering& map);
  template <typename Visit>
  void for_each_site(Visit&& visit) const {
    for (const auto& [tid, state] : threads_)
      for (const auto* stack : {&state.stack, &state.next_stack, &state.last_preempted, &state.last_waiting})
        if (*stack && (*stack)->site.valid()) visit((*stack)->site);
  }

 private:
  enum class Phase : uint8_t { kUnseen, kOn, kOff, kUnknown };

  struct Waking {
    uint64_t time_ns = 0;  // 0: none
    event::Task waker{};
  };

  struct State {
    Phase phase = Phase::kUnseen;
    profile::ThreadId row{};
    uint64_t since_ns = 0;
    uint32_t cpu = 0;
    // Of the wait that goes on.
    bool is_runnable = false;  // it never waited: preempted, or not yet run
    bool had_stack_source = false;
    bool is_uninterruptible = false;
    std::optional<WaitStack> stack = {};
    // Of its last waits, where stacks are thinned: of a preemption, of any other.
    std::optional<WaitStack> last_preempted = {}, last_waiting = {};
    Waking woken = {};
    // While on a CPU: what a switch-out to come will need.
    std::optional<WaitStack> next_stack = {};
    Waking early = {};
  };

  State& state_of(const SwitchedThread& thread);
  // When a stretch that ends at end_ns began, as far as the profile reaches back: it may keep its last seconds only.
  uint64_t begin_of(const State& state, uint64_t end_ns) const;
  void end_on_cpu(const State& state, uint64_t end_ns, uint32_t cpu, bool preempted);
  void end_wait(State& state, uint64_t end_ns, bool is_open);
  void set_stack(State& state, profile::OffCpuInterval& off);
  void do_without_stack(const State& state, profile::OffCpuInterval& off);
  profile::ThreadId row_of(const event::Task& waker) const;
  Diagnostics& diagnostics() { return builder_.profile().diagnostics; }

  profile::ProfileBuilder& builder_;
  bool has_switches_ = false, has_off_cpu_ = false, is_thinned_ = false;
  uint64_t last_lost_ns_ = 0;
  std::unordered_map<int32_t, State> threads_;  // the living, by tid
};

}  // namespace cprof::pipeline
