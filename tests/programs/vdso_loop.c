// Spends its time inside the vdso.
#include "work.h"

NOINLINE void read_clock(int times) {
  struct timespec t;
  for (int i = 0; i < times; ++i) clock_gettime(CLOCK_MONOTONIC, &t);
  AFTER_CALL();
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  while (now_seconds() < deadline) read_clock(10000);
  return 0;
}
