#include "embed/scopes.h"

#include <cprof/cprof.h>

#include <atomic>
#include <cstring>

#include "embed/library.h"

int cprof_enabled_ = 0;

namespace cprof::embed {
namespace {

using inproc::ThreadState;

std::atomic<bool> overwrites_oldest{false};
std::atomic<uint64_t> without_ring{0};

uint64_t word_of(const cprof_thread& thread, uint32_t id, uint32_t kind) {
  return id | uint64_t{kind} << 24 | uint64_t{thread.depth} << 32 | thread.track;
}

uint32_t push(cprof_thread& thread, uint32_t id, uintptr_t sp) {
  cprof_open_scope& open = thread.open[thread.depth];
  open.sp = sp;
  __atomic_store_n(&open.word, word_of(thread, id, CPROF_KIND_SCOPE_), __ATOMIC_RELAXED);
  const uint32_t depth = thread.depth;
  __atomic_store_n(&thread.depth, depth + 1, __ATOMIC_RELAXED);
  __atomic_store_n(&open.start, cprof_ticks_(), __ATOMIC_RELAXED);
  return depth;
}

void close_top(cprof_thread& thread, uint64_t now, uint64_t flags) {
  const uint32_t depth = thread.depth - 1;
  __atomic_store_n(&thread.depth, depth, __ATOMIC_RELAXED);
  cprof_put_(&thread, thread.open[depth].start, now, thread.open[depth].word | flags);
}

// Stack pointers of different stacks say nothing about each other.
bool are_on_one_stack(const ThreadState& state, uintptr_t a, uintptr_t b) {
  const inproc::StackRange own{state.stack_low, state.stack_high}, fiber{state.fiber_low, state.fiber_high};
  if (state.fiber) return fiber.high && fiber.holds(a) && fiber.holds(b);  // a coroutine goes on at any depth of any stack
  return own.holds(a) && own.holds(b);
}

void close_below(cprof_thread& thread, uintptr_t sp) {
  const uint64_t now = cprof_ticks_();
  while (thread.depth && thread.open[thread.depth - 1].sp < sp) close_top(thread, now, kJumpedFlag);
}

cprof_thread* thread_with_ring() {
  ThreadState* state = Library::get().attach(true);
  if (!state) without_ring.fetch_add(1, std::memory_order_relaxed);
  return state ? &state->scopes : nullptr;
}

uint32_t id_of(cprof_site* site) {
  uint32_t id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
  if (id) return id;
  id = Library::get().names().of_site(site->name);
  __atomic_store_n(&site->id, id, __ATOMIC_RELAXED);
  return id;
}

// Names are short, and nearly always equal: a call of strcmp() costs more.
bool is_same(const char* a, const char* b) {
  while (*a == *b && *a) a++, b++;
  return *a == *b;
}

// Of a name that the thread has not given by this pointer lately.
__attribute__((noinline)) uint32_t id_of_other_text(ThreadState& state, const char* text, uint8_t& guess) {
  const size_t length = strlen(text);
  uint64_t hash = length;
  for (size_t n = 0; n < length; n++) hash = (hash ^ static_cast<unsigned char>(text[n])) * 0x100000001b3;
  guess = static_cast<uint8_t>(hash % inproc::kRecentNames);
  inproc::RecentName& recent = state.recent_names[guess];
  if (length < sizeof recent.text && recent.id && strcmp(recent.text, text) == 0) return recent.id;
  const uint32_t id = Library::get().names().of_text(text);
  if (length >= sizeof recent.text) return id;
  recent.id = id;
  memcpy(recent.text, text, length + 1);
  return id;
}

// A thread's recent names in front of the table and its lock. Most callers give the same text by the same pointer: it says where
// to look, and the text decides.
uint32_t id_of_text(ThreadState& state, const char* text) {
  uint8_t& guess = state.recent_by_pointer[reinterpret_cast<uintptr_t>(text) * 0x9e3779b97f4a7c15 >> 58];
  const inproc::RecentName& recent = state.recent_names[guess];
  if (recent.id && is_same(recent.text, text)) return recent.id;
  return id_of_other_text(state, text, guess);
}

bool is_enabled() { return __atomic_load_n(&cprof_enabled_, __ATOMIC_RELAXED); }

}  // namespace

void set_overwrites(bool overwrites) { overwrites_oldest = overwrites; }

uint64_t scopes_without_ring() { return without_ring; }

void close_jumped_scopes(uintptr_t target_sp) {
  cprof_thread* thread = cprof_thread_;
  if (!thread || !thread->depth || !target_sp) return;
  const ThreadState& state = *ThreadState::of(thread);
  if (are_on_one_stack(state, thread->open[thread->depth - 1].sp, target_sp)) close_below(*thread, target_sp);
}

}  // namespace cprof::embed

using namespace cprof::embed;
using cprof::inproc::ThreadState;

extern "C" {

int cprof_make_room_(cprof_thread* thread) {
  ThreadState& state = *ThreadState::of(thread);
  for (;;) {
    const bool overwrites = overwrites_oldest.load(std::memory_order_relaxed);
    const uint64_t tail = state.scopes_tail.load(std::memory_order_acquire);
    const uint64_t limit = overwrites ? UINT64_MAX : tail + thread->mask + 1;
    __atomic_store_n(&thread->limit, limit, __ATOMIC_RELAXED);
    if (overwrites != overwrites_oldest.load(std::memory_order_relaxed)) continue;
    if (thread->head < limit) return 1;
    __atomic_store_n(&thread->lost, thread->lost + 1, __ATOMIC_RELAXED);
    return 0;
  }
}

uint32_t cprof_begin_unusual_(cprof_thread* thread, uint32_t id, uintptr_t sp) {
  if (!thread->open && !thread_with_ring()) return CPROF_NO_SCOPE_;
  if (thread->depth && thread->open[thread->depth - 1].sp < sp &&
      are_on_one_stack(*ThreadState::of(thread), thread->open[thread->depth - 1].sp, sp))
    close_below(*thread, sp);
  if (thread->depth < thread->max_depth) return push(*thread, id, sp);
  ThreadState::of(thread)->scopes_unringed.fetch_add(1, std::memory_order_relaxed);
  return CPROF_NO_SCOPE_;
}

uint32_t cprof_begin_first_(cprof_site* site, uintptr_t sp) {
  const uint32_t id = id_of(site);
  cprof_thread* thread = thread_with_ring();
  return thread ? cprof_push_(thread, id, sp) : CPROF_NO_SCOPE_;
}

void cprof_end_unusual_(uint32_t scope) {
  cprof_thread* thread = cprof_thread_;
  if (!thread || thread->depth <= scope) return;  // a jump has closed it already
  const uint64_t now = cprof_ticks_();
  while (thread->depth > scope + 1) close_top(*thread, now, kJumpedFlag);
  close_top(*thread, now, 0);
}

void cprof_point_first_(cprof_site* site, uint32_t kind, uint64_t value) {
  const uint32_t id = id_of(site);
  if (cprof_thread* thread = thread_with_ring()) cprof_put_(thread, cprof_ticks_(), value, word_of(*thread, id, kind));
}

uint32_t cprof_scope_begin(const char* name) {
  if (!is_enabled() || !name) return CPROF_NO_SCOPE_;
  // One that has no ring has no room for open scopes either, which is the unusual case.
  cprof_thread* thread = cprof_thread_ ? cprof_thread_ : thread_with_ring();
  // The caller's stack pointer: the scope is the caller's.
  const auto sp = reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa());
  return thread ? cprof_push_(thread, id_of_text(*ThreadState::of(thread), name), sp) : CPROF_NO_SCOPE_;
}

void cprof_scope_end(uint32_t scope) { cprof_end_(&scope); }

void cprof_counter(const char* name, double value) {
  if (!is_enabled() || !name) return;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  cprof_thread* thread = thread_with_ring();
  if (!thread) return;
  const uint32_t id = id_of_text(*ThreadState::of(thread), name);
  cprof_put_(thread, cprof_ticks_(), bits, word_of(*thread, id, CPROF_KIND_COUNTER_));
}

void cprof_mark(const char* name) {
  if (!is_enabled() || !name) return;
  cprof_thread* thread = thread_with_ring();
  if (!thread) return;
  const uint32_t id = id_of_text(*ThreadState::of(thread), name);
  cprof_put_(thread, cprof_ticks_(), 0, word_of(*thread, id, CPROF_KIND_MARK_));
}

uint32_t cprof_rate_begin(uint32_t hz) {
  constexpr uint32_t kHighest = 100'000;
  if (!hz || hz > kHighest || !Library::exists() || !Library::get().samples_threads()) return 0;
  ThreadState* state = Library::get().attach(false);
  return state ? Library::get().threads().set_period(*state, 1'000'000'000 / hz) : 0;
}

void cprof_rate_end(uint32_t before) {
  if (before && cprof_thread_) Library::get().threads().set_period(*ThreadState::of(cprof_thread_), before);
}

void cprof_thread_name(const char* name) {
  if (!name || !Library::get().attach(false)) return;
  Library::get().threads().name_current(name);
}

}  // extern "C"
