// Eight named threads, each in its own function. Thread k (from 0) takes k+1 parts of 36 of the CPU time that all CPUs
// have in the asked time. With a second argument "equal" all spin until the deadline instead.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

static double part_seconds;    // of CPU time
static double equal_deadline;  // 0: by CPU time
enum { kChunk = 50000 };

static double own_cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define WORKER(k)                                                                    \
  NOINLINE void worker_##k(void) {                                                   \
    if (equal_deadline > 0) {                                                        \
      while (now_seconds() < equal_deadline) BURN(kChunk);                           \
    } else {                                                                         \
      while (own_cpu_seconds() < part_seconds * ((k) + 1)) BURN(kChunk);             \
    }                                                                                \
    AFTER_CALL();                                                                    \
  }
WORKER(0) WORKER(1) WORKER(2) WORKER(3) WORKER(4) WORKER(5) WORKER(6) WORKER(7)

static void (*const kWorkers[8])(void) = {worker_0, worker_1, worker_2, worker_3, worker_4, worker_5, worker_6, worker_7};

static void* start(void* argument) {
  long k = (long)argument;
  char name[16];
  snprintf(name, sizeof name, "worker-%ld", k);
  pthread_setname_np(pthread_self(), name);
  kWorkers[k]();
  return NULL;
}

int main(int argc, char** argv) {
  double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
  if (cpus > 4.5) cpus = 4.5;  // the biggest of the threads has 8 parts of 36
  part_seconds = run_seconds(argc, argv) * cpus / 36;
  if (argc > 2 && strcmp(argv[2], "equal") == 0) equal_deadline = deadline_from(argc, argv);
  pthread_t threads[8];
  for (long k = 0; k < 8; ++k) pthread_create(&threads[k], NULL, start, (void*)k);
  for (int k = 0; k < 8; ++k) pthread_join(threads[k], NULL);
  return 0;
}
