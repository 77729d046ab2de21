// faults N [DEPTH FILE WORK]: N minor page faults, paced by WORK multiplications each (default: just below the kernel's limit
// of samples per tick), DEPTH calls below main. FILE gets the median time of one fault in nanoseconds: what an event costs
// with a profiler, less what it costs without, is the profiler's own part, and no timer of its own is in it.
#include <stdio.h>
#include <sys/mman.h>

#include "work.h"

enum { kPage = 4096, kPages = 4096 };

static unsigned* times_ns;
static long timed, work = 30000;

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

NOINLINE void touch_pages(char* memory, long pages) {
  for (long page = 0; page < pages; ++page) {
    double before = now_ns();
    memory[page * kPage] = 1;
    times_ns[timed++] = (unsigned)(now_ns() - before);
    BURN(work);
  }
}

NOINLINE unsigned descend(unsigned depth, char* memory, long pages) {
  if (depth == 0) {
    touch_pages(memory, pages);
    return 1;
  }
  unsigned below = descend(depth - 1, memory, pages);
  AFTER_CALL();
  return below + 1;
}

static int by_time(const void* left, const void* right) {
  unsigned a = *(const unsigned*)left, b = *(const unsigned*)right;
  return a < b ? -1 : a > b;
}

static int write_median(const char* path) {
  qsort(times_ns, (size_t)timed, sizeof *times_ns, by_time);
  FILE* file = fopen(path, "w");
  if (!file) return 1;
  fprintf(file, "%u\n", timed ? times_ns[timed / 2] : 0);
  return fclose(file) != 0;
}

int main(int argc, char** argv) {
  long left = argc > 1 ? atol(argv[1]) : 100000;
  unsigned depth = argc > 2 ? (unsigned)atol(argv[2]) : 0;
  if (argc > 4) work = atol(argv[4]);
  char* memory = mmap(NULL, (size_t)kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // Written once here, so that keeping the times makes no faults of its own.
  size_t times_size = (size_t)left * sizeof *times_ns;
  times_ns = mmap(NULL, times_size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED || times_ns == MAP_FAILED) return 1;
  madvise(memory, (size_t)kPages * kPage, MADV_NOHUGEPAGE);
  while (left > 0) {
    long pages = left < kPages ? left : kPages;
    descend(depth, memory, pages);
    madvise(memory, (size_t)kPages * kPage, MADV_DONTNEED);
    left -= pages;
  }
  return argc > 3 ? write_median(argv[3]) : 0;
}
