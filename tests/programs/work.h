// What every test program shares: work of a known size and a deadline. Included by C and C++; prints nothing.
#ifndef CPROF_TESTS_WORK_H
#define CPROF_TESTS_WORK_H

#include <stdlib.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

// A chain of dependent multiplications: its time is n times the multiplier's latency, whatever the alignment of the
// loop and whatever runs on the sibling thread, so equal n is equal time.
#define BURN(n)                                                        \
  do {                                                                 \
    unsigned long burn_x = 3;                                          \
    for (unsigned long burn_i = 0; burn_i < (unsigned long)(n); ++burn_i) { \
      burn_x *= 0x9E3779B97F4A7C15ul;                                  \
      __asm__ volatile("" : "+r"(burn_x));                             \
    }                                                                  \
  } while (0)

static inline double now_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// argv[1]: how long to run, in seconds (default 1).
static inline double run_seconds(int argc, char** argv) { return argc > 1 ? atof(argv[1]) : 1.0; }

static inline double deadline_from(int argc, char** argv) { return now_seconds() + run_seconds(argc, argv); }

// Keeps a call from becoming a tail call: something must happen after it.
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

#endif
