/* What the BPF programs and user space share: the values of maps and the records of the ring buffers. Plain C, the same
 * text for both; every struct has the same layout in both worlds (no implicit padding, pointers never).
 * The BPF programs read tables that user space writes (store, rules, modules, mappings, processes) and write records.
 */
#ifndef CPROF_SAMPLER_ABI_H
#define CPROF_SAMPLER_ABI_H

#include <stdint.h>

/* The store: 32-bit words in chunks of 4 MiB, made when they are needed. It holds page indexes and rows of modules. A
 * page index and the rows of one page never cross a chunk's end. */
#define SAMPLER_CHUNK_BITS 20
#define SAMPLER_CHUNK_WORDS (1u << SAMPLER_CHUNK_BITS)
#define SAMPLER_MAX_CHUNKS 128
#define SAMPLER_SEARCH_STEPS 13   /* a page's rows and what fills its chunk: at most 8,191 */

#define SAMPLER_MAX_RULES 65536
#define SAMPLER_MAX_MODULES 16384
#define SAMPLER_MAX_MAPPINGS 65536
#define SAMPLER_MAPPING_STEPS 12  /* executable mappings of one process: at most 4,095 */
#define SAMPLER_MAX_PROCESSES 16384
#define SAMPLER_MAX_TASKS 65536
#define SAMPLER_MAX_CPUS 1024
#define SAMPLER_SENT_SLOTS 65536
#define SAMPLER_MAX_COUNTS 32768

#define SAMPLER_MAX_DEPTH 4096
#define SAMPLER_MAX_KERNEL 127
#define SAMPLER_SLOTS 2                  /* of each CPU: what is being made by a program, and by one that interrupts it */
#define SAMPLER_SNAPSHOT_BYTES 30720
#define SAMPLER_SNAPSHOTS_PER_SECOND 250   /* and CPU */
#define SAMPLER_SNAPSHOTS_AT_ONCE 1000     /* while a large table is being made */
#define SAMPLER_REGISTERS 17      /* by DWARF number: 0-15, 16 is rip */

enum sampler_module_state {
  SAMPLER_MODULE_UNKNOWN = 0,     /* its table is not made yet */
  SAMPLER_MODULE_READY,
  SAMPLER_MODULE_NO_TABLE         /* code without unwind information: the frame pointer is tried */
};

/* Code is found by its file offset, which the kernel knows of a mapping before anyone has opened the file. */
struct sampler_module {
  uint64_t base;                  /* file offset of page 0 */
  uint32_t page_count;
  uint32_t pages_at;              /* word in the store */
  uint32_t state;                 /* written last */
  uint32_t asked;                 /* the BPF program has asked for the table */
};

enum sampler_mapping_flags {
  SAMPLER_MAPPING_UNSURE = 1      /* what lies here only user space can find out */
};

struct sampler_mapping {
  uint64_t start, end;
  uint64_t bias;                  /* address - file offset */
  uint32_t module;                /* 0: memory without a file */
  uint32_t flags;
};

/* A process's mappings: count entries from first on, sorted. */
struct sampler_process {
  uint32_t first, count;
  uint64_t seen_ns;               /* all that happened to the process until then is in them */
  uint32_t epoch;                 /* counts changes: equal stacks of two epochs may be different code */
  uint32_t unused;
};

struct sampler_task {
  uint32_t on;                    /* 0: a command that has not been executed yet */
};

/* A thread off the CPU. */
struct sampler_wait {
  uint64_t out_ns;                /* 0: it is on a CPU */
  uint64_t woken_ns;
  uint32_t waker_pid, waker_tid;
};

/* A file as the kernel names it, for mappings that a program meets before user space tells of them. */
#define SAMPLER_VDSO_DEVICE 0xffffffffu
struct sampler_file_key {
  uint64_t inode;
  uint32_t device;                /* major << 20 | minor; SAMPLER_VDSO_DEVICE: the kernel's own page of code */
  uint32_t unused;
};

struct sampler_count_key {
  uint64_t stack;
  uint32_t pid, tid;
  uint32_t metric;
  uint32_t in_kernel;
};
struct sampler_count {
  uint64_t samples, weight;
};

enum sampler_filter { SAMPLER_ALL = 0, SAMPLER_TASKS, SAMPLER_CGROUP };

/* Constants of one run: the program is verified with them, what is off costs nothing. */
struct sampler_settings {
  uint32_t filter;
  uint32_t max_depth;
  uint32_t has_metrics;           /* more than one event: each has its number in attr.wakeup_watermark */
  uint32_t ring_bytes;
  uint8_t kernel_stacks;
  uint8_t user_stacks;            /* enum sampler_user_stacks */
  uint8_t inherit;
  uint8_t let_through;            /* also let perf write its own sample: the test compares both */
  uint8_t count_only;             /* samples are counted per stack, without times */
  uint8_t off_cpu;
  uint8_t some_cpus;              /* only those whose bit is set in cpus */
  uint8_t unused_bytes[1];
  uint64_t cpus[SAMPLER_MAX_CPUS / 64];
};
enum sampler_user_stacks { SAMPLER_USER_NONE = 0, SAMPLER_USER_TABLES, SAMPLER_USER_FRAME_POINTERS };

/* Changed while the programs run. */
struct sampler_control {
  uint32_t on;
  uint32_t counts;                /* 0 or 1: which of the two maps is counted into */
  uint32_t is_behind;             /* the reader holds much that is not looked at yet: no more copies of stacks */
  uint32_t unused;
};

enum sampler_record_type {
  SAMPLER_SAMPLE = 1,
  SAMPLER_STACK,
  SAMPLER_SNAPSHOT,
  SAMPLER_SWITCH_OUT,
  SAMPLER_SWITCH_IN,
  SAMPLER_WANT_MODULE
};

struct sampler_header {
  uint32_t type;
  uint32_t cpu;
  uint64_t time_ns;               /* CLOCK_MONOTONIC */
  uint32_t pid, tid;
  uint64_t stack;                 /* the stack's id; 0: none. SAMPLER_WANT_MODULE: the module */
};

enum sampler_flags { SAMPLER_IN_KERNEL = 1, SAMPLER_PREEMPTED = 2, SAMPLER_UNINTERRUPTIBLE = 4 };

/* The metric of what is no sample but the stack of the switch-out that follows. */
#define SAMPLER_SWITCH_STACKS 0xffffffffu

struct sampler_sample {
  struct sampler_header header;
  uint64_t ip;
  uint64_t period;
  uint32_t metric;
  uint32_t flags;
};

/* user addresses, leaf first, then kernel addresses, leaf first. */
struct sampler_stack {
  struct sampler_header header;
  uint32_t user, kernel;
  uint32_t end;                   /* enum sampler_end */
  uint32_t unused;
  uint64_t seen_ns;               /* the mappings that the walk went by are as of then */
  uint64_t addresses[SAMPLER_MAX_DEPTH + SAMPLER_MAX_KERNEL + 1];
};

/* A sample that the program could not unwind: user space does it, as it does with perf's. */
struct sampler_snapshot {
  struct sampler_sample sample;
  uint32_t kernel;
  uint32_t stack_bytes;
  uint32_t reason;                /* enum sampler_end */
  uint32_t unused;
  uint64_t registers[SAMPLER_REGISTERS];
  uint64_t addresses[SAMPLER_MAX_KERNEL];
  uint8_t stack[SAMPLER_SNAPSHOT_BYTES];
};

struct sampler_switch {
  struct sampler_header header;
  uint64_t woken_ns;
  uint32_t waker_pid, waker_tid;
  uint32_t flags;
  uint32_t unused;
};

/* In the order of event::WalkEnd. */
enum sampler_end {
  SAMPLER_END_UNKNOWN = 0,
  SAMPLER_END_COMPLETE,
  SAMPLER_END_NO_REGISTERS,
  SAMPLER_END_MAX_DEPTH,
  SAMPLER_END_NO_MAPPING,
  SAMPLER_END_NO_UNWIND_INFO,
  SAMPLER_END_BAD_UNWIND_INFO,
  SAMPLER_END_UNREADABLE,
  SAMPLER_END_NO_PROGRESS,
  SAMPLER_END_BAD_PC,
  SAMPLER_END_EXEC,
  SAMPLER_END_UNSUPPORTED_ABI
};

/* Counters, per CPU: of what was lost or done otherwise, and of all samples, by which user space checks the rest. */
enum sampler_counter {
  SAMPLER_RING_FULL_SAMPLES = 0,
  SAMPLER_RING_FULL_STACKS,
  SAMPLER_RING_FULL_SNAPSHOTS,
  SAMPLER_RING_FULL_SWITCHES,
  SAMPLER_NO_RING,
  SAMPLER_COUNTS_FULL,
  SAMPLER_TASKS_FULL,
  SAMPLER_PROCESSES_FULL,
  SAMPLER_WAITS_FULL,
  SAMPLER_SNAPSHOTS_OVER_BUDGET,
  SAMPLER_LOOKED_UP,
  SAMPLER_UNTRACED_SWITCHES,
  SAMPLER_SAMPLES,
  SAMPLER_COUNTERS
};

#endif
