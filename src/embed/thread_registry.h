// Every thread of the process that is sampled or has recorded something. Threads come by themselves (their start is hooked, or
// they meet their first scope) or are found in /proc/self/task; they end by a key's destructor, or by being gone from there.
// Any thread; a lock, never taken by the signal handler.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "collect/inproc/interrupts.h"
#include "collect/inproc/thread_state.h"

namespace cprof::embed {

// Threads of the library, which are no part of what it records.
enum class OwnThread : uint8_t { kCollector, kControl, kTrigger };

// One life of one thread. The collector's own columns are its to write.
struct LiveThread {
  inproc::ThreadState* state = nullptr;
  int32_t tid = 0;
  uint64_t start_ticks = 0, end_ticks = 0;   // end 0: alive
  uint64_t event_ns = 0;                     // CPU time while armed, final once it ended
  std::string given_name, comm, comm_when_given;
  bool is_hooked = false;                    // it will say when it ends

  // The collector's:
  uint32_t row = UINT32_MAX;
  uint64_t weighed_ns = 0, lost_samples_seen = 0, lost_scopes_seen = 0;

  const std::string& name() const { return !given_name.empty() && comm == comm_when_given ? given_name : comm; }
};

class ThreadRegistry {
 public:
  struct Sampling {
    inproc::InterruptSetting setting;
    bool is_on = false;
    bool is_running = true;    // false: armed, but between two windows
  };

  // Makes or finds the calling thread's state and sets its thread-local pointer. Null: no memory, or too many threads.
  inproc::ThreadState* attach_current();
  // Gives the calling thread what its scopes are written to. False: no memory.
  static bool give_ring(inproc::ThreadState& state, uint64_t records);
  void end_current(inproc::ThreadState* state);
  void name_current(std::string_view name);

  // 0 or -errno of the calling thread's event. Threads that exist now are armed, later ones as they come.
  int start_sampling(const inproc::InterruptSetting& setting);
  void stop_sampling();
  void set_running(bool running);
  // Of the calling thread; the period before, 0 when it is not sampled.
  uint32_t set_period(inproc::ThreadState& state, uint64_t period_ns);
  // All threads anew: another signal, for instance.
  void rearm(const inproc::InterruptSetting& setting);
  // Programs close descriptors that they did not open: how many events were made again.
  uint32_t renew_closed_events();
  // Looks for threads that nothing told of, and for those that went. Also learns ranges of stacks.
  void scan();
  void read_names();
  // The main thread and all others have ended by pthread_exit(): the library's own are what keeps the process.
  bool is_program_over() const;
  // Before it does anything else.
  void leave_out(OwnThread which, int32_t tid) { own_tids_[static_cast<size_t>(which)] = tid; }
  // Baselines for a new session: what threads have written before is not of it.
  void begin_session();

  // Under the lock.
  void for_each(const std::function<void(LiveThread&)>& visit);
  // Forgets ended threads whose last data the collector has taken.
  void recycle_ended();
  bool all_handlers_left(uint64_t epoch) const;
  uint32_t timer_threads() const { return timer_threads_; }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  // In a forked child: the events are the parent's; only the descriptors are ours to close.
  void abandon_in_child();

 private:
  LiveThread* find(int32_t tid);
  LiveThread* acquire(int32_t tid);
  inproc::ThreadState* new_state();
  void arm(LiveThread& thread);
  int try_arming(const inproc::InterruptSetting& setting);
  void end(LiveThread& thread);
  void learn_stacks();
  bool is_own(int32_t tid) const {
    return std::ranges::any_of(own_tids_, [&](const std::atomic<int32_t>& own) { return own == tid; });
  }

  mutable std::mutex mutex_;
  std::vector<LiveThread> threads_;
  std::vector<inproc::ThreadState*> free_;
  Sampling sampling_;
  std::array<std::atomic<int32_t>, 3> own_tids_{};  // by OwnThread; 0: none
  uint32_t next_index_ = 0, timer_threads_ = 0;
};

int32_t current_tid();

}  // namespace cprof::embed
