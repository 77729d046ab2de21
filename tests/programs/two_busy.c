// Two busy threads with stacks of a dozen frames, for the bench. argv[2]: a file for its own CPU seconds, so that the
// bench can tell them from the profiler's in one run.
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static double deadline;

NOINLINE unsigned climb(unsigned depth) {
  if (depth == 0) {
    BURN(20000);
    return 1;
  }
  unsigned below = climb(depth - 1);
  AFTER_CALL();
  return below + 1;
}

static void* start(void* unused) {
  for (unsigned round = 0; now_seconds() < deadline; ++round) climb(5 + round % 10);
  return unused;
}

static int write_own_cpu(const char* path) {
  struct timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  FILE* file = fopen(path, "w");
  if (!file) return 1;
  fprintf(file, "%f\n", (double)used.tv_sec + (double)used.tv_nsec * 1e-9);
  return fclose(file) != 0;
}

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  pthread_t second;
  pthread_create(&second, NULL, start, NULL);
  start(NULL);
  pthread_join(second, NULL);
  return argc > 2 ? write_own_cpu(argv[2]) : 0;
}
