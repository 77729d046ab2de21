// two_busy SECONDS [FILE [ROUNDS]]: two busy threads with stacks of a dozen frames, for the bench. FILE gets the threads' CPU
// seconds at work, so that the bench can tell them from the profiler's in one run, be it a thread of this process. With ROUNDS
// each thread does that much work, however long it takes, so that what a profiler takes of the program's time shows in them.
#include <pthread.h>
#include <stdio.h>

#include "work.h"

static double deadline;
static unsigned long fixed_rounds;
static double cpu_seconds[2];

NOINLINE unsigned climb(unsigned depth) {
  if (depth == 0) {
    BURN(20000);
    return 1;
  }
  unsigned below = climb(depth - 1);
  AFTER_CALL();
  return below + 1;
}

static double own_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void* start(void* used) {
  const double before = own_seconds();
  for (unsigned long round = 0; fixed_rounds ? round < fixed_rounds : now_seconds() < deadline; ++round) {
    climb(5 + (unsigned)(round % 10));
  }
  *(double*)used = own_seconds() - before;
  return NULL;
}

static int write_own_cpu(const char* path) {
  FILE* file = fopen(path, "w");
  if (!file) return 1;
  fprintf(file, "%f\n", cpu_seconds[0] + cpu_seconds[1]);
  return fclose(file) != 0;
}

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  fixed_rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
  pthread_t second;
  pthread_create(&second, NULL, start, &cpu_seconds[1]);
  start(&cpu_seconds[0]);
  pthread_join(second, NULL);
  return argc > 2 ? write_own_cpu(argv[2]) : 0;
}
