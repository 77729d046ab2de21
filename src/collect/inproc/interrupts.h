// Makes one thread be interrupted while it runs: a perf task-clock event whose signal goes to that thread, or, where perf is
// refused, a timer of its CPU time, or of the wall clock. Any thread may arm any other of the process. Raw system calls
// only. A port to another system replaces interrupts.cc and handler.cc.
#pragma once

#include <cstdint>

#include "collect/inproc/thread_state.h"

namespace cprof::inproc {

struct InterruptSetting {
  Interrupt kind = Interrupt::kPerf;
  uint64_t period_ns = 1'000'000;
  int signal = 0;
  bool with_kernel = false;   // perf: also while the thread is in the kernel; its waits may then end early (EINTR)
};

// 0 or -errno. The state's tid must be set and nothing armed.
int arm(ThreadState& thread, const InterruptSetting& setting);
void disarm(ThreadState& thread);
int set_period(ThreadState& thread, const InterruptSetting& setting);
int set_running(ThreadState& thread, const InterruptSetting& setting, bool running);

// CPU time of the thread since it was armed; 0 when not known. The second works while the thread lives.
uint64_t event_ns(const ThreadState& thread);
uint64_t thread_cpu_ns(int32_t tid);

// Every state, once, before it is first armed; its index is its own and below kMaxStates.
inline constexpr uint32_t kMaxStates = 65536;
void add_state(ThreadState& thread);

// Whose event or timer a signal names. Null: none of ours.
ThreadState* owner_of_event(int fd);
ThreadState* owner_of_timer(uint64_t value);
// Whether the descriptor is still our event: programs close descriptors that they did not open.
bool owns_descriptor(const ThreadState& thread, int signal);

}  // namespace cprof::inproc
