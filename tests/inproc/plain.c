// A program that knows nothing of the library, for preloading: argv[1] CPU seconds of work in known shares.
#include "work.h"

NOINLINE void share_sixty(unsigned unit) { BURN(6 * unit); AFTER_CALL(); }
NOINLINE void share_thirty(unsigned unit) { BURN(3 * unit); AFTER_CALL(); }
NOINLINE void share_ten(unsigned unit) { BURN(1 * unit); AFTER_CALL(); }

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  unsigned random = 1;
  while (cpu_seconds() < run_seconds(argc, argv)) {
    for (int round = 0; round < 10; round++) {
      random = random * 1664525u + 1013904223u;
      const unsigned unit = 1000 + (random >> 20);
      share_sixty(unit);
      share_thirty(unit);
      share_ten(unit);
    }
  }
  return 0;
}
