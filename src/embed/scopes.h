// The uncommon ways of a scope: first use, overflow, jumps, fibers. The common ones are inline in cprof.h.
#pragma once

#include <cstdint>
#include <string>

namespace cprof::embed {

// In a record's word: the scope was left by a jump over it.
constexpr uint64_t kJumpedFlag = uint64_t{1} << 28;

// What happens to a record when its ring is full. Before the first scope of a session.
void set_overwrites(bool overwrites);

// A jump of the calling thread to a frame at this stack pointer: scopes of the frames that it leaves end now, and say so.
void close_jumped_scopes(uintptr_t target_sp);

// Records of threads that could have no ring at all.
uint64_t scopes_without_ring();

void lock_fibers_for_fork();
void unlock_fibers_after_fork();

}  // namespace cprof::embed
