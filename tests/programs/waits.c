// One named thread per kind of wait, each in its own function, waiting COUNT times for about MS milliseconds; then a
// pair of threads that share one CPU and take it from one another. Each prints what it measured itself:
//   NAME COUNT TOTAL_NS CPU_NS     waits, the time in them, the CPU time of that
// argv[1]: milliseconds of a wait (default 20), argv[2]: how many (default 20), argv[3]: a directory for its files.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

static long wait_ns = 20000000;
static int rounds = 20;
static const char* folder = "/tmp";

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ns(long ns) {
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  nanosleep(&t, NULL);
}

// What a wait needs beside itself: a descriptor pair, a futex word, a lock.
struct kit {
  int fds[2];
  int epoll;
  uint32_t word;
  pthread_mutex_t mutex;
  pthread_barrier_t barrier;
  char* pages;
  int file;
};

struct kind {
  const char* name;
  void (*prepare)(struct kit*);
  void (*wait)(struct kit*);    // waits once
  void (*wake)(struct kit*);    // the partner's part, after wait_ns; null: the wait ends by itself
};

NOINLINE static void wait_sleep(struct kit* kit) {
  (void)kit;
  pause_ns(wait_ns);
  AFTER_CALL();
}

NOINLINE static void wait_futex(struct kit* kit) {
  while (syscall(SYS_futex, &kit->word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 && !__atomic_load_n(&kit->word, __ATOMIC_ACQUIRE)) {
  }
  __atomic_store_n(&kit->word, 0, __ATOMIC_RELEASE);
}
static void wake_futex(struct kit* kit) {
  __atomic_store_n(&kit->word, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, &kit->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void prepare_mutex(struct kit* kit) { pthread_mutex_init(&kit->mutex, NULL); }
NOINLINE static void wait_mutex(struct kit* kit) {
  pthread_mutex_lock(&kit->mutex);
  pthread_mutex_unlock(&kit->mutex);
  AFTER_CALL();
}

static void prepare_pipe(struct kit* kit) {
  if (pipe(kit->fds)) _exit(3);
}
static void prepare_socket(struct kit* kit) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, kit->fds)) _exit(3);
}
static void prepare_epoll(struct kit* kit) {
  prepare_socket(kit);
  kit->epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  if (epoll_ctl(kit->epoll, EPOLL_CTL_ADD, kit->fds[0], &event)) _exit(3);
}
static void take_byte(struct kit* kit) {
  char byte;
  if (read(kit->fds[0], &byte, 1) != 1) _exit(3);
}
static void wake_byte(struct kit* kit) {
  if (write(kit->fds[1], "x", 1) != 1) _exit(3);
}
NOINLINE static void wait_pipe(struct kit* kit) {
  take_byte(kit);
  AFTER_CALL();
}
NOINLINE static void wait_socket(struct kit* kit) {
  take_byte(kit);
  AFTER_CALL();
}
NOINLINE static void wait_poll(struct kit* kit) {
  struct pollfd ask = {kit->fds[0], POLLIN, 0};
  while (poll(&ask, 1, -1) < 0 && errno == EINTR) {
  }
  take_byte(kit);
}
NOINLINE static void wait_epoll(struct kit* kit) {
  struct epoll_event event;
  while (epoll_wait(kit->epoll, &event, 1, -1) < 0 && errno == EINTR) {
  }
  take_byte(kit);
}

enum { kFileBytes = 1 << 16, kPageBytes = 4096 };
static void prepare_file(struct kit* kit) {
  char path[512];
  snprintf(path, sizeof path, "%s/waits.%d.%p", folder, getpid(), (void*)kit);
  kit->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (kit->file < 0) _exit(3);
  unlink(path);
  if (ftruncate(kit->file, kFileBytes)) _exit(3);
}
// Writes much and waits until it is on the disk.
NOINLINE static void wait_fsync(struct kit* kit) {
  static char block[kFileBytes];
  memset(block, (int)now_ns(), sizeof block);
  if (pwrite(kit->file, block, sizeof block, 0) != (ssize_t)sizeof block) _exit(3);
  if (fsync(kit->file)) _exit(3);
}
static void prepare_mapping(struct kit* kit) {
  prepare_file(kit);
  wait_fsync(kit);
  kit->pages = mmap(NULL, kFileBytes, PROT_READ, MAP_SHARED, kit->file, 0);
  if (kit->pages == MAP_FAILED) _exit(3);
}
// Every page from the disk again.
NOINLINE static void wait_fault(struct kit* kit) {
  madvise(kit->pages, kFileBytes, MADV_DONTNEED);
  posix_fadvise(kit->file, 0, kFileBytes, POSIX_FADV_DONTNEED);
  madvise(kit->pages, kFileBytes, MADV_RANDOM);
  volatile char sum = 0;
  for (int i = 0; i < kFileBytes; i += kPageBytes) sum += kit->pages[i];
}

static const struct kind kKinds[] = {
    {"sleep", NULL, wait_sleep, NULL},           {"futex", NULL, wait_futex, wake_futex},
    {"mutex", prepare_mutex, wait_mutex, NULL},  {"pipe", prepare_pipe, wait_pipe, wake_byte},
    {"socket", prepare_socket, wait_socket, wake_byte}, {"poll", prepare_pipe, wait_poll, wake_byte},
    {"epoll", prepare_epoll, wait_epoll, wake_byte},    {"fsync", prepare_file, wait_fsync, NULL},
    {"fault", prepare_mapping, wait_fault, NULL},
};
enum { kKindCount = sizeof kKinds / sizeof kKinds[0] };

struct role {
  const struct kind* kind;
  struct kit kit;
  uint64_t waited_ns, cpu_ns;
};

static void name_thread(const char* what, const char* name) {
  char text[16];
  snprintf(text, sizeof text, "%s-%s", what, name);
  pthread_setname_np(pthread_self(), text);
}

static void* run_waiter(void* argument) {
  struct role* role = argument;
  name_thread("wait", role->kind->name);
  for (int i = 0; i < rounds; ++i) {
    pthread_barrier_wait(&role->kit.barrier);
    if (role->kind->wait == wait_mutex) pthread_barrier_wait(&role->kit.barrier);  // the partner holds it now
    uint64_t before = now_ns(), cpu_before = cpu_ns();
    role->kind->wait(&role->kit);
    role->cpu_ns += cpu_ns() - cpu_before;
    role->waited_ns += now_ns() - before;
  }
  return NULL;
}

static void* run_partner(void* argument) {
  struct role* role = argument;
  name_thread("wake", role->kind->name);
  for (int i = 0; i < rounds; ++i) {
    pthread_barrier_wait(&role->kit.barrier);
    if (role->kind->wait == wait_mutex) {
      pthread_mutex_lock(&role->kit.mutex);
      pthread_barrier_wait(&role->kit.barrier);
      pause_ns(wait_ns);
      pthread_mutex_unlock(&role->kit.mutex);
    } else if (role->kind->wake) {
      pause_ns(wait_ns);
      role->kind->wake(&role->kit);
    } else {
      pause_ns(wait_ns / 4);  // no storm of switches: each of them is to have its stack
    }
  }
  return NULL;
}

static void run_kind(struct role* role) {
  pthread_t waiter, partner;
  if (role->kind->prepare) role->kind->prepare(&role->kit);
  pthread_barrier_init(&role->kit.barrier, NULL, 2);
  pthread_create(&waiter, NULL, run_waiter, role);
  pthread_create(&partner, NULL, run_partner, role);
  pthread_join(waiter, NULL);
  pthread_join(partner, NULL);
  printf("%s %d %llu %llu\n", role->kind->name, rounds, (unsigned long long)role->waited_ns,
         (unsigned long long)role->cpu_ns);
}

// Two threads on one CPU, each busy all the time: half of it each waits for its turn.
static double pair_deadline;
struct turn {
  char name;
  uint64_t cpu_ns, wall_ns;
};

NOINLINE static void spin_on_shared_cpu(void) {
  while (now_seconds() < pair_deadline) BURN(50000);
  AFTER_CALL();
}

static void* run_spinner(void* argument) {
  struct turn* turn = argument;
  char name[2] = {turn->name, 0};
  name_thread("spin", name);
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  sched_setaffinity(0, sizeof first, &first);
  uint64_t begin = now_ns(), cpu_begin = cpu_ns();
  spin_on_shared_cpu();
  turn->cpu_ns = cpu_ns() - cpu_begin;
  turn->wall_ns = now_ns() - begin;
  return NULL;
}

static void run_pair(void) {
  struct turn turns[2] = {{.name = 'a'}, {.name = 'b'}};
  pthread_t threads[2];
  pair_deadline = now_seconds() + (double)wait_ns * rounds * 1e-9;
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, run_spinner, &turns[i]);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; ++i)
    printf("spin-%c 0 %llu %llu\n", turns[i].name, (unsigned long long)turns[i].wall_ns,
           (unsigned long long)turns[i].cpu_ns);
}

int main(int argc, char** argv) {
  if (argc > 1) wait_ns = (long)(atof(argv[1]) * 1e6);
  if (argc > 2) rounds = atoi(argv[2]);
  if (argc > 3) folder = argv[3];
  for (int i = 0; i < kKindCount; ++i) {
    struct role role = {.kind = &kKinds[i]};
    run_kind(&role);
  }
  run_pair();
  return 0;
}
