// switch_storm SECONDS [CPU]: two threads that hand a byte to and fro through two pipes as fast as they can: tens of
// thousands of switches a second, all of them on that CPU when one is named. Prints each thread's switches as the kernel
// counted them: "NAME SWITCHES".
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "work.h"

static int to_pong[2], to_ping[2];
static double deadline;

NOINLINE static void ping_loop(void) {
  char byte = 'x';
  while (now_seconds() < deadline && write(to_pong[1], &byte, 1) == 1 && read(to_ping[0], &byte, 1) == 1) {
  }
  close(to_pong[1]);
}

NOINLINE static void pong_loop(void) {
  char byte;
  while (read(to_pong[0], &byte, 1) == 1 && write(to_ping[1], &byte, 1) == 1) {
  }
}

static void tell_switches(const char* name) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  printf("%s %ld\n", name, usage.ru_nvcsw + usage.ru_nivcsw);
  fflush(stdout);
}

static void* pong(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "pong");
  pong_loop();
  tell_switches("pong");
  return NULL;
}

static void stay_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

int main(int argc, char** argv) {
  if (pipe(to_pong) || pipe(to_ping)) return 3;
  if (argc > 2) stay_on(atoi(argv[2]));
  deadline = deadline_from(argc, argv);
  pthread_t other;
  pthread_create(&other, NULL, pong, NULL);
  pthread_setname_np(pthread_self(), "ping");
  ping_loop();
  tell_switches("ping");
  pthread_join(other, NULL);
  return 0;
}
