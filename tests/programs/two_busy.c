// Two busy threads with stacks of a dozen frames, for the bench.
#include <pthread.h>

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

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  pthread_t second;
  pthread_create(&second, NULL, start, NULL);
  start(NULL);
  pthread_join(second, NULL);
  return 0;
}
