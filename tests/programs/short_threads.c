// Threads of 5 ms each, one after the other, each with a name of its own.
#include <pthread.h>
#include <stdio.h>

#include "work.h"

NOINLINE void short_work(void) {
  double end = now_seconds() + 0.005;
  while (now_seconds() < end) BURN(20000);
  AFTER_CALL();
}

static void* start(void* argument) {
  char name[16];
  snprintf(name, sizeof name, "short-%ld", (long)argument % 100);
  pthread_setname_np(pthread_self(), name);
  short_work();
  return NULL;
}

int main(int argc, char** argv) {
  double deadline = deadline_from(argc, argv);
  for (long i = 0; now_seconds() < deadline; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, start, (void*)i) != 0) return 1;
    pthread_join(thread, NULL);
  }
  return 0;
}
