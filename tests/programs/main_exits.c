// The main thread ends at once; a worker goes on alone.
#include <pthread.h>

#include "work.h"

static double deadline;

NOINLINE void outliving_work(void) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

static void* start(void* unused) {
  outliving_work();
  exit(0);
  return unused;
}

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  pthread_t worker;
  pthread_create(&worker, NULL, start, NULL);
  pthread_exit(NULL);
}
