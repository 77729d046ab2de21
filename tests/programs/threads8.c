// Eight named threads, each in its own function. Thread k (from 0) does k+1 parts of 36, by fixed work sized to last
// about the asked time on all CPUs. With a second argument "equal" all spin until the deadline instead.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "work.h"

static unsigned long chunks_per_part;  // chunks of kChunk multiplications
static double equal_deadline;          // 0: fixed work
enum { kChunk = 10000 };

#define WORKER(k)                                                                    \
  NOINLINE void worker_##k(void) {                                                   \
    if (equal_deadline > 0) {                                                        \
      while (now_seconds() < equal_deadline) BURN(kChunk);                           \
    } else {                                                                         \
      for (unsigned long i = 0; i < chunks_per_part * ((k) + 1); ++i) BURN(kChunk);  \
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

NOINLINE unsigned long calibrate_chunks_per_second(void) {
  unsigned long chunks = 0;
  double begin = now_seconds();
  while (now_seconds() < begin + 0.02) {
    BURN(kChunk);
    ++chunks;
  }
  return (unsigned long)((double)chunks / (now_seconds() - begin));
}

int main(int argc, char** argv) {
  double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
  if (cpus > 4.5) cpus = 4.5;  // the biggest of the threads has 8 parts of 36
  chunks_per_part = (unsigned long)((double)calibrate_chunks_per_second() * run_seconds(argc, argv) * cpus / 36);
  if (argc > 2 && strcmp(argv[2], "equal") == 0) equal_deadline = deadline_from(argc, argv);
  pthread_t threads[8];
  for (long k = 0; k < 8; ++k) pthread_create(&threads[k], NULL, start, (void*)k);
  for (int k = 0; k < 8; ++k) pthread_join(threads[k], NULL);
  return 0;
}
