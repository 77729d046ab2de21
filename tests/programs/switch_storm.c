// Two threads that hand a byte to and fro through two pipes as fast as they can: tens of thousands of switches a second.
#include <pthread.h>
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

static void* pong(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "pong");
  pong_loop();
  return NULL;
}

int main(int argc, char** argv) {
  if (pipe(to_pong) || pipe(to_ping)) return 3;
  deadline = deadline_from(argc, argv);
  pthread_t other;
  pthread_create(&other, NULL, pong, NULL);
  pthread_setname_np(pthread_self(), "ping");
  ping_loop();
  pthread_join(other, NULL);
  return 0;
}
