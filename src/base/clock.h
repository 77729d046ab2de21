// The kernel's clocks as nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>

namespace cprof {

constexpr uint64_t kSecondNs = 1'000'000'000;

inline uint64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * kSecondNs + static_cast<uint64_t>(t.tv_nsec);
}

// What all times of a recording are in.
inline uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace cprof
