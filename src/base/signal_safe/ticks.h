/* The counter that stamps everything recorded inside a process: the TSC, or the generic timer of aarch64. Only differences
 * mean anything; embed/tick_clock.h turns them into CLOCK_MONOTONIC. Freestanding C.
 */
#ifndef CPROF_BASE_TICKS_H
#define CPROF_BASE_TICKS_H

#ifndef __cplusplus
typedef unsigned long cprof_tick_count;
#else
using cprof_tick_count = unsigned long;
#endif

static inline cprof_tick_count cprof_read_ticks(void) {
#if defined(__x86_64__)
  unsigned low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (cprof_tick_count)high << 32 | low;
#elif defined(__aarch64__)
  cprof_tick_count ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
#error "no tick counter for this CPU"
#endif
}

#endif
