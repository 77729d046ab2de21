// The uncommon ways of a scope: first use, overflow, jumps, fibers. The common ones are inline in cprof.h.
#pragma once

#include <cstdint>
#include <string>

namespace cprof::embed {

// A record's word (cprof.h has its layout). The flag: the scope was left by a jump over it.
constexpr uint64_t kJumpedFlag = uint64_t{1} << 28;
constexpr uint32_t name_of(uint64_t word) { return static_cast<uint32_t>(word & 0xffffff); }
constexpr uint32_t kind_of(uint64_t word) { return static_cast<uint32_t>(word >> 24 & 15); }
constexpr uint32_t track_of(uint64_t word) { return static_cast<uint32_t>(word >> 44); }

// What happens to a record when its ring is full. Before the first scope of a session.
void set_overwrites(bool overwrites);

// A jump of the calling thread to a frame at this stack pointer: scopes of the frames that it leaves end now, and say so.
void close_jumped_scopes(uintptr_t target_sp);

// Records of threads that could have no ring at all.
uint64_t scopes_without_ring();

void lock_fibers_for_fork();
void unlock_fibers_after_fork();

}  // namespace cprof::embed
