// One thread as the library knows it: what its scopes and its signal handler write, and where the collector reads. States are
// made once, handed from a thread that ended to a later one, and never freed: whoever holds a pointer may follow it.
#pragma once

#include <cprof/cprof.h>

#include <atomic>
#include <cstdint>

#include "collect/inproc/sample_ring.h"
#include "collect/inproc/stack_reader.h"
#include "collect/inproc/stack_walk.h"

namespace cprof::inproc {

enum class Interrupt : uint8_t { kNone, kPerf, kCpuTimer, kWallTimer };

// Of the handler's ticks: four buckets to each power of two.
inline constexpr uint32_t kCostBuckets = 128;

// A name that is known at run time only, with its number.
struct RecentName {
  uint32_t id = 0;
  char text[60] = {};
};
inline constexpr uint32_t kRecentNames = 64;

struct ThreadState {
  cprof_thread scopes{};               // first: what the macros' thread-local pointer points to

  // Signal handler -> collector.
  SampleRing samples;
  std::atomic<uint64_t> handler_epoch{0};   // 0: no handler runs here
  std::atomic<uint64_t> seen_sp{0}, seen_thread_pointer{0};  // of a sample whose stack has no known range
  std::atomic<uint32_t> cost[kCostBuckets] = {};  // handler runs by their ticks
  std::atomic<uint64_t> cost_ticks{0};

  // Collector or the thread itself -> signal handler.
  std::atomic<uint64_t> stack_low{0}, stack_high{0};
  std::atomic<uint64_t> fiber_low{0}, fiber_high{0};
  std::atomic<uint32_t> period_ns{0};

  // Scopes.
  std::atomic<uint64_t> scopes_tail{0};     // what the collector has read
  std::atomic<uint64_t> scopes_unringed{0}; // lost before a ring was asked: too deep, no memory
  void* fiber = nullptr;                    // whose open scopes are in scopes.open; the thread's own are then here
  cprof_open_scope* own_open = nullptr;
  uint32_t own_depth = 0, own_max_depth = 0;
  RecentName recent_names[kRecentNames];
  uint8_t recent_by_pointer[kRecentNames] = {};   // which of them a pointer gave last

  // Arming; under the registry's lock.
  int32_t tid = 0;
  uint32_t index = 0;
  Interrupt interrupt = Interrupt::kNone;
  int event_fd = -1;
  int timer = -1;

  std::atomic<bool> has_ended{false};
  PageCopies pages;
  RuleCache rules;

  static ThreadState* of(cprof_thread* thread) { return reinterpret_cast<ThreadState*>(thread); }
};

}  // namespace cprof::inproc
