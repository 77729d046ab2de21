// A process called "server" whose only busy thread has a name of its own.
#include <pthread.h>
#include <sys/prctl.h>

#include "work.h"

static double deadline;

NOINLINE void serve_attach(void) {
  while (now_seconds() < deadline) BURN(100000);
  AFTER_CALL();
}

static void* start(void* unused) {
  prctl(PR_SET_NAME, "Attach API wait");
  serve_attach();
  return unused;
}

int main(int argc, char** argv) {
  deadline = deadline_from(argc, argv);
  prctl(PR_SET_NAME, "server");
  pthread_t worker;
  pthread_create(&worker, NULL, start, NULL);
  pthread_join(worker, NULL);
  return 0;
}
