// The signal handler: takes one sample of the thread that it interrupts. Async-signal-safe to the letter: what it can reach is
// this folder and unwind/core, checked by tools/check_signal_safe.py. It allocates nothing, takes no lock, keeps errno, and
// uses under 2 KB of stack.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "collect/inproc/module_list.h"
#include "collect/inproc/thread_state.h"

namespace cprof::inproc {

// What the handler goes by. Set by embed.
struct HandlerSetting {
  std::atomic<const ModuleList*> modules{nullptr};  // null: nothing is sampled
  std::atomic<uint64_t> epoch{1};                   // grows with every published list
  std::atomic<int> signal{0};
  std::atomic<int> process_id{0};
  std::atomic<uint32_t> max_frames{kMaxFrames};
  std::atomic<void (*)(int, siginfo_t*, void*)> previous{nullptr};  // whose the signal was: gets what is not ours
};
extern HandlerSetting handler_setting;

inline int sampling_signal() { return handler_setting.signal.load(std::memory_order_relaxed); }

void on_sampling_signal(int signal, siginfo_t* info, void* context);

// Captures the given context into the thread's ring, as the handler does. For tests and the bench.
void take_sample(ThreadState& thread, const void* context, uint32_t missed);

}  // namespace cprof::inproc
