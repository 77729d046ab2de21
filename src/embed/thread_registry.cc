#include "embed/thread_registry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/file.h"
#include "collect/inproc/handler.h"
#include "object/process_files.h"

namespace cprof::embed {
namespace {

using inproc::ThreadState;

constexpr uint64_t kSampleWords = 16 * 1024;   // 128 KB: a tenth of a second at 4 kHz with 40 frames
constexpr uint32_t kOpenScopes = 512;

void* take_memory(size_t bytes, bool touched) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (touched ? MAP_POPULATE : 0);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

std::string comm_of(int32_t tid) {
  auto text = read_text_file("/proc/self/task/" + std::to_string(tid) + "/comm", 64);
  if (!text) return "";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  return *text;
}

bool is_zombie(int32_t tid) {
  const auto text = read_text_file("/proc/self/task/" + std::to_string(tid) + "/stat", 1024);
  const size_t end = text ? text->rfind(") ") : std::string::npos;
  return end != std::string::npos && text->substr(end + 2).starts_with('Z');
}

bool is_gone(const ThreadState& state) {
  if (state.event_fd < 0) return false;
  f_owner_ex owner = {};
  return fcntl(state.event_fd, F_GETOWN_EX, &owner) == 0 && owner.pid == 0;
}

}  // namespace

int32_t current_tid() { return static_cast<int32_t>(syscall(SYS_gettid)); }

ThreadState* ThreadRegistry::new_state() {
  if (!free_.empty()) {
    ThreadState* state = free_.back();
    free_.pop_back();
    return state;
  }
  if (next_index_ == inproc::kMaxStates) return nullptr;
  void* memory = take_memory(sizeof(ThreadState), false);
  if (!memory) return nullptr;
  auto* state = new (memory) ThreadState;
  auto* words = static_cast<std::atomic<uint64_t>*>(take_memory(kSampleWords * sizeof(uint64_t), false));
  if (words) state->samples.set_memory(words, kSampleWords);
  state->index = next_index_++;
  inproc::add_state(*state);
  return state;
}

LiveThread* ThreadRegistry::find(int32_t tid) {
  for (LiveThread& thread : threads_)
    if (thread.tid == tid && !thread.end_ticks) return &thread;
  return nullptr;
}

LiveThread* ThreadRegistry::acquire(int32_t tid) {
  ThreadState* state = new_state();
  if (!state) return nullptr;
  state->tid = tid;
  state->has_ended = false;
  state->stack_low = state->stack_high = state->fiber_low = state->fiber_high = 0;
  state->seen_sp = 0;
  // What an earlier thread, or in a forked child the parent, left in it is not this one's.
  state->samples.consume(state->samples.available());
  state->scopes_tail = state->scopes.head;
  state->fiber = nullptr;
  state->scopes.open = state->own_open;
  state->scopes.max_depth = state->own_open ? kOpenScopes : 0;
  state->scopes.depth = 0;
  state->scopes.track = 0;
  __atomic_store_n(&state->scopes.limit, 0, __ATOMIC_RELAXED);
  LiveThread& thread = threads_.emplace_back();
  thread.state = state;
  thread.tid = tid;
  thread.start_ticks = cprof_ticks_();
  thread.comm = comm_of(tid);
  thread.lost_samples_seen = state->samples.lost();
  thread.lost_scopes_seen = state->scopes.lost + state->scopes_unringed;
  return &thread;
}

void ThreadRegistry::arm(LiveThread& thread) {
  if (!sampling_.is_on || is_own(thread.tid) || thread.state->interrupt != inproc::Interrupt::kNone) return;
  inproc::InterruptSetting setting = sampling_.setting;
  int result = inproc::arm(*thread.state, setting);
  if (result < 0 && setting.kind == inproc::Interrupt::kPerf && result != -ESRCH) {
    setting.kind = inproc::Interrupt::kCpuTimer;  // no descriptor is left, for instance
    result = inproc::arm(*thread.state, setting);
    timer_threads_ += result == 0;
  }
  if (result < 0) return;
  thread.event_ns = thread.weighed_ns = inproc::event_ns(*thread.state);
  if (!sampling_.is_running) inproc::set_running(*thread.state, setting, false);
}

ThreadState* ThreadRegistry::attach_current() {
  const int32_t tid = current_tid();
  uint64_t low = 0, high = 0;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* start = nullptr;
    size_t bytes = 0;
    if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) {
      low = reinterpret_cast<uint64_t>(start);
      high = low + bytes;
    }
    pthread_attr_destroy(&attributes);
  }
  std::lock_guard lock(mutex_);
  LiveThread* thread = find(tid);
  if (!thread) thread = acquire(tid);
  if (!thread) return nullptr;
  thread->is_hooked = true;
  ThreadState* state = thread->state;
  state->stack_low = low;
  state->stack_high = high;
  cprof_thread_ = &state->scopes;
  arm(*thread);
  return state;
}

bool ThreadRegistry::give_ring(ThreadState& state, uint64_t records) {
  cprof_thread& scopes = state.scopes;
  if (!scopes.ring) {
    scopes.ring = static_cast<cprof_record*>(take_memory(records * sizeof(cprof_record), true));
    scopes.mask = records - 1;
  }
  if (scopes.ring && !scopes.open) {
    scopes.open = static_cast<cprof_open_scope*>(take_memory(kOpenScopes * sizeof(cprof_open_scope), true));
    if (scopes.open) scopes.max_depth = kOpenScopes;
    state.own_open = scopes.open;
  }
  return scopes.ring && scopes.open;
}

void ThreadRegistry::end(LiveThread& thread) {
  ThreadState& state = *thread.state;
  const uint64_t ns = inproc::event_ns(state);
  if (ns) thread.event_ns = ns;
  inproc::disarm(state);
  thread.end_ticks = cprof_ticks_();
  state.has_ended.store(true, std::memory_order_release);
}

void ThreadRegistry::end_current(ThreadState* state) {
  std::lock_guard lock(mutex_);
  cprof_thread_ = nullptr;
  for (LiveThread& thread : threads_) {
    if (thread.state != state || thread.end_ticks) continue;
    thread.comm = comm_of(thread.tid);
    end(thread);
  }
}

void ThreadRegistry::name_current(std::string_view name) {
  const int32_t tid = current_tid();
  const std::string comm = comm_of(tid);
  std::lock_guard lock(mutex_);
  LiveThread* thread = find(tid);
  if (!thread) return;
  thread->given_name = name.substr(0, 256);
  thread->comm = thread->comm_when_given = comm;
}

int ThreadRegistry::try_arming(const inproc::InterruptSetting& setting) {
  ThreadState* state = new_state();
  if (!state) return -ENOMEM;
  state->tid = current_tid();
  const int result = inproc::arm(*state, setting);
  if (result >= 0) inproc::disarm(*state);
  free_.push_back(state);
  return result;
}

int ThreadRegistry::start_sampling(const inproc::InterruptSetting& setting) {
  // A thread of the library that starts a session only tries whether events are allowed.
  const bool by_own = is_own(current_tid());
  ThreadState* own = by_own ? nullptr : attach_current();
  if (!own && !by_own) return -ENOMEM;
  {
    std::lock_guard lock(mutex_);
    sampling_ = {setting, true, true};
    timer_threads_ = 0;
    const int result = by_own ? try_arming(setting) : inproc::arm(*own, setting);
    if (result < 0) {
      sampling_.is_on = false;
      return result;
    }
    if (LiveThread* thread = own ? find(own->tid) : nullptr) thread->event_ns = thread->weighed_ns = inproc::event_ns(*own);
    for (LiveThread& thread : threads_)
      if (!thread.end_ticks) arm(thread);
  }
  scan();
  return 0;
}

void ThreadRegistry::stop_sampling() {
  std::lock_guard lock(mutex_);
  sampling_.is_on = false;
  for (LiveThread& thread : threads_) {
    if (thread.end_ticks || thread.state->interrupt == inproc::Interrupt::kNone) continue;
    thread.event_ns = inproc::event_ns(*thread.state);
    inproc::disarm(*thread.state);
  }
}

uint32_t ThreadRegistry::set_period(inproc::ThreadState& state, uint64_t period_ns) {
  std::lock_guard lock(mutex_);
  if (state.interrupt == inproc::Interrupt::kNone) return 0;
  const uint32_t before = state.period_ns;
  inproc::InterruptSetting setting = sampling_.setting;
  setting.period_ns = period_ns;
  return inproc::set_period(state, setting) < 0 ? 0 : before;
}

void ThreadRegistry::rearm(const inproc::InterruptSetting& setting) {
  std::lock_guard lock(mutex_);
  sampling_.setting = setting;
  sampling_.is_on = true;
  for (LiveThread& thread : threads_) {
    if (thread.end_ticks) continue;
    inproc::disarm(*thread.state);
    arm(thread);
  }
}

uint32_t ThreadRegistry::renew_closed_events() {
  std::lock_guard lock(mutex_);
  uint32_t renewed = 0;
  for (LiveThread& thread : threads_) {
    if (thread.end_ticks || thread.state->event_fd < 0 || inproc::owns_descriptor(*thread.state, inproc::sampling_signal())) continue;
    inproc::disarm(*thread.state);
    arm(thread);
    renewed++;
  }
  return renewed;
}

void ThreadRegistry::set_running(bool running) {
  std::lock_guard lock(mutex_);
  sampling_.is_running = running;
  for (LiveThread& thread : threads_) {
    inproc::InterruptSetting setting = sampling_.setting;
    setting.kind = thread.state->interrupt;
    if (!thread.end_ticks) inproc::set_running(*thread.state, setting, running);
  }
}

void ThreadRegistry::scan() {
  auto tids = object::list_threads(getpid());
  if (!tids) return;
  std::ranges::sort(*tids);
  std::lock_guard lock(mutex_);
  for (LiveThread& thread : threads_) {
    if (thread.end_ticks || thread.is_hooked) continue;
    if (!std::ranges::binary_search(*tids, thread.tid) || is_gone(*thread.state)) end(thread);
  }
  std::vector<int32_t> known;
  for (const LiveThread& thread : threads_)
    if (!thread.end_ticks) known.push_back(thread.tid);
  std::ranges::sort(known);
  for (int32_t tid : *tids) {
    if (is_own(tid) || std::ranges::binary_search(known, tid)) continue;
    if (LiveThread* thread = acquire(tid)) arm(*thread);
  }
  learn_stacks();
}

bool ThreadRegistry::is_program_over() const {
  const int32_t leader = getpid();
  if (!is_zombie(leader)) return false;
  const auto tids = object::list_threads(leader);
  return tids && std::ranges::all_of(*tids, [&](int32_t tid) { return tid == leader || is_own(tid); });
}

// The mapping that holds a thread's stack pointer and its control block is its stack: glibc puts the block at the top. The
// main thread's stack is a mapping of its own.
void ThreadRegistry::learn_stacks() {
  const bool is_asked = std::ranges::any_of(threads_, [](const LiveThread& thread) {
    return !thread.end_ticks && !thread.state->stack_high && thread.state->seen_sp;
  });
  if (!is_asked) return;
  auto maps = object::read_maps(getpid());
  if (!maps) return;
  for (LiveThread& thread : threads_) {
    ThreadState& state = *thread.state;
    const uint64_t sp = state.seen_sp.load(std::memory_order_acquire), block = state.seen_thread_pointer;
    if (thread.end_ticks || state.stack_high || !sp) continue;
    for (const object::MapsEntry& entry : *maps) {
      if (sp < entry.start || sp >= entry.end || !entry.writable) continue;
      const bool is_own = block > sp && block <= entry.end;
      if (!is_own && entry.path != "[stack]") break;
      state.stack_low = entry.start;
      state.stack_high = is_own ? block : entry.end;
    }
    state.seen_sp = 0;
  }
}

void ThreadRegistry::read_names() {
  std::lock_guard lock(mutex_);
  for (LiveThread& thread : threads_) {
    if (thread.end_ticks) continue;
    std::string comm = comm_of(thread.tid);
    if (!comm.empty()) thread.comm = std::move(comm);
  }
}

void ThreadRegistry::begin_session() {
  std::lock_guard lock(mutex_);
  std::erase_if(threads_, [&](const LiveThread& thread) {
    if (thread.end_ticks) free_.push_back(thread.state);
    return thread.end_ticks != 0;
  });
  for (LiveThread& thread : threads_) {
    ThreadState& state = *thread.state;
    state.scopes_tail = __atomic_load_n(&state.scopes.head, __ATOMIC_ACQUIRE);
    __atomic_store_n(&state.scopes.limit, 0, __ATOMIC_RELAXED);
    state.samples.consume(state.samples.available());
    thread.row = UINT32_MAX;
    thread.start_ticks = cprof_ticks_();
    thread.event_ns = thread.weighed_ns = 0;
    thread.lost_samples_seen = state.samples.lost();
    thread.lost_scopes_seen = __atomic_load_n(&state.scopes.lost, __ATOMIC_RELAXED) + state.scopes_unringed;
  }
}

void ThreadRegistry::for_each(const std::function<void(LiveThread&)>& visit) {
  std::lock_guard lock(mutex_);
  for (LiveThread& thread : threads_) visit(thread);
}

void ThreadRegistry::recycle_ended() {
  std::lock_guard lock(mutex_);
  std::erase_if(threads_, [&](const LiveThread& thread) {
    const ThreadState& state = *thread.state;
    const uint64_t head = __atomic_load_n(&state.scopes.head, __ATOMIC_ACQUIRE);
    const bool is_done = thread.end_ticks && !state.samples.available() && state.scopes_tail == head && !state.handler_epoch;
    if (is_done) free_.push_back(thread.state);
    return is_done;
  });
}

bool ThreadRegistry::all_handlers_left(uint64_t epoch) const {
  std::lock_guard lock(mutex_);
  return std::ranges::all_of(threads_, [&](const LiveThread& thread) {
    const uint64_t inside = thread.state->handler_epoch.load(std::memory_order_seq_cst);
    return inside == 0 || inside >= epoch;
  });
}

void ThreadRegistry::abandon_in_child() {
  for (LiveThread& thread : threads_) {
    if (thread.state->event_fd >= 0) close(thread.state->event_fd);
    thread.state->event_fd = thread.state->timer = -1;
    thread.state->interrupt = inproc::Interrupt::kNone;
    thread.state->handler_epoch = 0;
    free_.push_back(thread.state);
  }
  threads_.clear();
  sampling_.is_on = false;
  cprof_thread_ = nullptr;
}

}  // namespace cprof::embed
