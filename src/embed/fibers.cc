// Fibers: each has a stack of open scopes of its own and a track of its own; entering one puts them in the thread's place, so
// the inline code of a scope knows nothing of fibers. A fiber may be entered by another thread each time.
#include <cprof/cprof.h>

#include <map>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "embed/library.h"
#include "embed/scopes.h"

namespace cprof::embed {
namespace {

using inproc::ThreadState;

constexpr uint32_t kOpenScopes = 128;
constexpr uint32_t kTrackShift = 44;

struct Fiber {
  std::string name;
  uint64_t track = 0;    // in its place in a record's word
  uint32_t depth = 0;
  cprof_open_scope open[kOpenScopes] = {};
};

struct Fibers {
  std::mutex mutex;
  std::map<uint64_t, std::unique_ptr<Fiber>> by_id;
};

// Never destroyed: fibers may run when the program's destructors do.
Fibers& fibers() {
  static auto* all = new Fibers;
  return *all;
}

std::string track_name(uint64_t id, const char* name) {
  if (!name || !*name) return fmt::format("fiber {}", id);
  for (const auto& [other, fiber] : fibers().by_id)
    if (other != id && fiber->name == name) return fmt::format("{} #{}", name, id);
  return name;
}

Fiber& fiber_of(uint64_t id, const char* name) {
  std::lock_guard lock(fibers().mutex);
  std::unique_ptr<Fiber>& fiber = fibers().by_id[id];
  if (!fiber) {
    fiber = std::make_unique<Fiber>();
    fiber->name = track_name(id, name);
    fiber->track = uint64_t{Library::get().names().of_text(fiber->name)} << kTrackShift;
  }
  return *fiber;
}

void put_back(ThreadState& state) {
  if (!state.fiber) return;
  static_cast<Fiber*>(state.fiber)->depth = state.scopes.depth;
  state.fiber = nullptr;
  state.fiber_low = state.fiber_high = 0;
  state.scopes.open = state.own_open;
  state.scopes.track = 0;
  state.scopes.max_depth = state.own_max_depth;
  __atomic_store_n(&state.scopes.depth, state.own_depth, __ATOMIC_RELAXED);
}

}  // namespace

void lock_fibers_for_fork() { fibers().mutex.lock(); }
void unlock_fibers_after_fork() { fibers().mutex.unlock(); }

}  // namespace cprof::embed

using namespace cprof::embed;

extern "C" {

void cprof_fiber_enter(uint64_t id, const char* name, const void* stack_low, size_t stack_bytes) {
  if (!id || !__atomic_load_n(&cprof_enabled_, __ATOMIC_RELAXED)) return;
  cprof::inproc::ThreadState* state = Library::get().attach(true);
  if (!state) return;
  put_back(*state);
  Fiber& fiber = fiber_of(id, name);
  cprof_thread& scopes = state->scopes;
  state->own_depth = scopes.depth;
  state->own_max_depth = scopes.max_depth;
  state->fiber = &fiber;
  const uint64_t low = reinterpret_cast<uint64_t>(stack_low);
  state->fiber_low = low;
  state->fiber_high = low ? low + stack_bytes : 0;
  scopes.open = fiber.open;
  scopes.max_depth = kOpenScopes;
  scopes.track = fiber.track;
  __atomic_store_n(&scopes.depth, fiber.depth, __ATOMIC_RELAXED);
}

void cprof_fiber_leave(void) {
  if (cprof_thread_) put_back(*cprof::inproc::ThreadState::of(cprof_thread_));
}

void cprof_fiber_end(uint64_t id) {
  if (!Library::exists()) return;
  cprof::inproc::ThreadState* state = cprof_thread_ ? cprof::inproc::ThreadState::of(cprof_thread_) : nullptr;
  std::unique_ptr<Fiber> ended;
  {
    std::lock_guard lock(fibers().mutex);
    auto found = fibers().by_id.find(id);
    if (found == fibers().by_id.end()) return;
    ended = std::move(found->second);
    fibers().by_id.erase(found);
  }
  if (state && state->fiber == ended.get()) put_back(*state);
  // What it had open ends with it.
  const uint64_t now = cprof_ticks_();
  while (ended->depth && state && state->scopes.ring) {
    ended->depth--;
    cprof_put_(&state->scopes, ended->open[ended->depth].start, now, ended->open[ended->depth].word);
  }
}

}  // extern "C"
