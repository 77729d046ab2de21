// two_busy SECONDS [FILE [ROUNDS]]: two busy threads with stacks of a dozen frames, for the bench. FILE gets its own CPU
// seconds, so that the bench can tell them from the profiler's in one run. With ROUNDS each thread does that much work,
// however long it takes, so that what a profiler takes of the program's time shows in those seconds.
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static double deadline;
static unsigned long fixed_rounds;

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
  for (unsigned long round = 0; fixed_rounds ? round < fixed_rounds : now_seconds() < deadline; ++round) {
    climb(5 + (unsigned)(round % 10));
  }
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
  fixed_rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
  pthread_t second;
  pthread_create(&second, NULL, start, NULL);
  start(NULL);
  pthread_join(second, NULL);
  return argc > 2 ? write_own_cpu(argv[2]) : 0;
}
