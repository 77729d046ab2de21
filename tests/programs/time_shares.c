// Named threads that spend known shares of their time on known things, for SECONDS (argv[1], default 3). Each prints what
// it measured itself, up to just before its end:
//   NAME TID WALL_NS CPU_NS USER_NS SYSTEM_NS WAIT_NS VOLUNTARY INVOLUNTARY
// WAIT_NS is the time in its waiting calls. With argv[2] N: N idle threads more, which wake up once a second.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "work.h"

static uint64_t end_ns;

static uint64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
static uint64_t cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

static void pause_ns(long ns) {
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  nanosleep(&t, NULL);
}

static void spin_ns(uint64_t ns) {
  uint64_t until = cpu_ns() + ns;
  while (cpu_ns() < until) BURN(2000);
}

// What a thread and its partner share.
struct kit {
  int fds[2];
  uint32_t word;
  pthread_barrier_t barrier;
};

enum { kTurnNs = 6000000 };  // of a wait, and half of that on a CPU

static void turn_user(struct kit* kit, uint64_t* waited) {
  (void)kit, (void)waited;
  spin_ns(kTurnNs);
}

static void turn_kernel(struct kit* kit, uint64_t* waited) {
  static char buffer[1 << 20];
  (void)waited;
  if (kit->fds[0] == 0) kit->fds[0] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < 20; i++)
    if (read(kit->fds[0], buffer, sizeof buffer) < 0) exit(3);
}

static void turn_sleep(struct kit* kit, uint64_t* waited) {
  (void)kit;
  spin_ns(kTurnNs / 2);
  uint64_t before = now_ns();
  pause_ns(kTurnNs);
  *waited += now_ns() - before;
}

#define WAITING_TURN(name, call)                          \
  static void turn_##name(struct kit* kit, uint64_t* waited) { \
    spin_ns(kTurnNs / 2);                                 \
    uint64_t before = now_ns();                           \
    call;                                                 \
    *waited += now_ns() - before;                         \
  }

static void take_byte(int fd) {
  char byte;
  if (read(fd, &byte, 1) != 1) exit(3);
}
static void take_when_ready(int fd) {
  struct pollfd ask = {fd, POLLIN, 0};
  poll(&ask, 1, -1);
}
static void take_word(uint32_t* word) {
  while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
  __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}
WAITING_TURN(pipe, take_byte(kit->fds[0]))
WAITING_TURN(socket, take_byte(kit->fds[0]))
WAITING_TURN(poll, take_when_ready(kit->fds[0]); take_byte(kit->fds[0]))
WAITING_TURN(futex, take_word(&kit->word))

static void no_wake(struct kit* kit) { (void)kit; }
static void wake_byte(struct kit* kit) {
  if (write(kit->fds[1], "x", 1) != 1) exit(3);
}
static void wake_word(struct kit* kit) {
  __atomic_store_n(&kit->word, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &kit->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

struct role {
  const char* name;
  void (*turn)(struct kit*, uint64_t* waited);
  void (*wake)(struct kit*);
  struct kit kit;
};

static struct role roles[] = {
    {"do-user", turn_user, no_wake, {{0}}},   {"do-kernel", turn_kernel, no_wake, {{0}}}, {"do-sleep", turn_sleep, no_wake, {{0}}},
    {"do-pipe", turn_pipe, wake_byte, {{0}}}, {"do-socket", turn_socket, wake_byte, {{0}}}, {"do-poll", turn_poll, wake_byte, {{0}}},
    {"do-futex", turn_futex, wake_word, {{0}}},
};

static void* wake(void* argument) {
  struct role* role = argument;
  pthread_setname_np(pthread_self(), "waker");
  for (;;) {
    pause_ns(kTurnNs);
    role->wake(&role->kit);
  }
  return NULL;
}

static uint64_t usage_ns(const struct timeval* t) { return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000; }

static void* run(void* argument) {
  struct role* role = argument;
  uint64_t start = now_ns(), waited = 0;
  pthread_setname_np(pthread_self(), role->name);
  while (now_ns() < end_ns) role->turn(&role->kit, &waited);
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  uint64_t cpu = cpu_ns();
  printf("%s %d %lu %lu %lu %lu %lu %ld %ld\n", role->name, (int)syscall(SYS_gettid), now_ns() - start, cpu, usage_ns(&usage.ru_utime),
         usage_ns(&usage.ru_stime), waited, usage.ru_nvcsw, usage.ru_nivcsw);
  return NULL;
}

static void* idle(void* unused) {
  (void)unused;
  for (;;) pause_ns(1000000000);
  return NULL;
}

static void start(void* (*what)(void*), void* argument, pthread_t* thread) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  if (pthread_create(thread, &attributes, what, argument)) exit(3);
}

int main(int argc, char** argv) {
  enum { kRoles = sizeof roles / sizeof roles[0] };
  end_ns = now_ns() + (uint64_t)((argc > 1 ? atof(argv[1]) : 3) * 1e9);
  pthread_t threads[kRoles], ignored;
  for (int i = 0; i < (argc > 2 ? atoi(argv[2]) : 0); i++) start(idle, NULL, &ignored);
  for (int i = 0; i < kRoles; i++) {
    struct role* role = &roles[i];
    if (role->wake == wake_byte && (strcmp(role->name, "do-socket") ? pipe(role->kit.fds) : socketpair(AF_UNIX, SOCK_STREAM, 0, role->kit.fds)))
      return 3;
    if (role->wake != no_wake) start(wake, role, &ignored);
    start(run, role, &threads[i]);
  }
  for (int i = 0; i < kRoles; i++) pthread_join(threads[i], NULL);
  fflush(stdout);
  _exit(0);
}
