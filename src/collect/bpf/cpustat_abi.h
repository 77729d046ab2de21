/* What the BPF programs of cpustat and user space agree on: settings, keys and values of the maps. Plain C, for both. */
#ifndef CPROF_CPUSTAT_ABI_H
#define CPROF_CPUSTAT_ABI_H

#include <stdint.h>

#define CPUSTAT_CLASSES 16              /* as many as profile::WaitClass has, and room */
#define CPUSTAT_UNKNOWN_CLASS 15        /* waits that could be told neither by class nor by stack */
#define CPUSTAT_MAX_FRAMES 127
#define CPUSTAT_MAX_STACKS 16384
#define CPUSTAT_NEW_STACKS 2048
#define CPUSTAT_MAX_TARGETS 65536
#define CPUSTAT_BELIEF 15               /* waits of one kind in a row whose stack is taken for the one before */

enum cpustat_filter { CPUSTAT_ALL, CPUSTAT_PROCESSES, CPUSTAT_THREADS, CPUSTAT_CGROUP };
enum cpustat_state { CPUSTAT_RUNNING, CPUSTAT_RUNNABLE, CPUSTAT_WAITING };

enum cpustat_counter {
  CPUSTAT_THREADS_FULL,                 /* threads that were not counted */
  CPUSTAT_TARGETS_FULL,
  CPUSTAT_UNTRACED_SWITCHES,
  CPUSTAT_WAITS_WITHOUT_STACK,          /* nothing tells their class */
  CPUSTAT_COUNTERS
};

struct cpustat_settings {
  uint32_t filter;
  uint32_t inherit;                     /* children of the processes, and with CPUSTAT_THREADS new threads */
};

/* The kernel's own accounts of a thread, since it exists. */
struct cpustat_account {
  uint64_t cpu_ns;
  uint64_t user_ns, system_ns;          /* by the tick: only their ratio means something */
  uint64_t voluntary, involuntary, migrations;
};

struct cpustat_thread {
  uint32_t pid, tid;
  char comm[16];
  uint64_t start_ns;                    /* of the thread, since boot: tells a reused tid apart */
  uint64_t ended_ns;                    /* 0: it lives */
  struct cpustat_account first;         /* when it was first seen */
  struct cpustat_account now;           /* when it last left its CPU */
  uint64_t runnable_ns;
  uint64_t waits_ns[CPUSTAT_CLASSES];
  uint64_t wakeups;
  uint64_t since_ns;                    /* the state's beginning */
  uint64_t woken_ns;                    /* 0: not since it began to wait */
  uint64_t stack;                       /* where it waits; 0: not known */
  uint32_t state;
  uint32_t cpu;
  uint32_t is_kernel;
  uint32_t believed;                    /* since the stack was looked at */
  uint64_t call_print;                  /* of the call whose stack that is; 0: none */
};

/* Waits whose stack had no class yet. */
struct cpustat_pending_key {
  uint64_t stack;
  uint32_t tid;
  uint32_t unused;
};

struct cpustat_stack {
  uint32_t count;
  uint32_t unused;
  uint64_t addresses[CPUSTAT_MAX_FRAMES];  /* innermost first */
};

#endif
