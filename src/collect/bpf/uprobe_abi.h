/* What the BPF programs of uprobe and user space agree on: settings, places of probes, keys and values of the maps, and
 * how a latency becomes a bucket. Plain C, for both. */
#ifndef CPROF_UPROBE_ABI_H
#define CPROF_UPROBE_ABI_H

#include <stdint.h>

#define UPROBE_MAX_DEPTH 128            /* calls within calls of one thread; a power of two */
#define UPROBE_MAX_TARGETS 65536
#define UPROBE_MAX_CALLERS 65536
#define UPROBE_SUB_BITS 4               /* 16 buckets a power of two: the middle of one is at most 3.2 % off */
#define UPROBE_SUBS (1u << UPROBE_SUB_BITS)
#define UPROBE_TOP_BIT 46               /* longer than 39 hours is one bucket */
#define UPROBE_BUCKETS ((UPROBE_TOP_BIT - UPROBE_SUB_BITS + 2) * UPROBE_SUBS)

enum uprobe_filter { UPROBE_ANY, UPROBE_ONE_PROCESS, UPROBE_PROCESSES, UPROBE_THREADS, UPROBE_CGROUP };

enum uprobe_counter {
  UPROBE_CALLS_LOST,                    /* no room in the ring: not among the slices */
  UPROBE_CALLS_LIMITED,                 /* more than the rate limit: not among the slices */
  UPROBE_NO_THREAD_ROOM,                /* calls without latency: the kernel had no memory for the thread */
  UPROBE_TOO_DEEP,                      /* calls without latency: more than UPROBE_MAX_DEPTH within each other */
  UPROBE_UNMATCHED,                     /* exits of calls that began before the probes were there */
  UPROBE_CALLERS_FULL,                  /* calls whose caller was not noted */
  UPROBE_TARGETS_FULL,
  UPROBE_STACKS_BUSY,                   /* calls without a stack: their CPU was walking as many as it can at once */
  UPROBE_COUNTERS
};

struct uprobe_settings {
  uint32_t filter;
  uint32_t process;                     /* with UPROBE_ONE_PROCESS */
  uint32_t inherit;                     /* children of the targets are targets */
  uint32_t shards;                      /* rows of a function, so that CPUs do not wait for each other; a power of two */
  uint32_t has_latency;                 /* else entries are counted, no more */
  uint32_t has_callers;
  uint32_t has_calls;                   /* each call is told, through the ring */
  uint32_t finds_mappings;              /* the kernel has bpf_find_vma */
  uint32_t rate_limit;                  /* calls told a second; 0: no limit */
  uint32_t max_depth;                   /* of stacks; the next three, too, are what the walk wants (walk_maps.bpf.h) */
  uint64_t least_ns;                    /* calls told last at least so long */
  uint64_t calls_bytes;                 /* of the ring of calls told */
  uint32_t ring_bytes;                  /* of each CPU's ring of stacks */
  uint8_t user_stacks, kernel_stacks;
  uint8_t has_stacks;                   /* for user space: the object that walks is the one to load */
  uint8_t unused;
  uint64_t self_ns[2];                  /* what a probe adds to a latency: first instruction emulated, or stepped */
  uint64_t pair_ns[2];                  /* what the probes of a call add to the calls around it, the same two */
};

enum uprobe_kind {
  UPROBE_ENTRY,
  UPROBE_EXIT,
  UPROBE_RETURNED,                      /* a uretprobe: the return address has been taken off the stack */
  UPROBE_CONTINUE,                      /* a jump to the function's own entry: what hits it next is no call */
};

/* Where a jump goes, when that is known only as it happens. */
enum uprobe_jump { UPROBE_FIXED, UPROBE_BY_REGISTER, UPROBE_BY_MEMORY };

#define UPROBE_ALWAYS 16                /* else the condition code of the instruction set, 0 to 15 */
#define UPROBE_NO_REGISTER 16           /* else its number there */

struct uprobe_site {
  uint64_t address;                     /* of the probe, in the file's own terms; so are the ranges */
  uint64_t start, end;                  /* an indirect jump that stays in here is no exit, */
  uint64_t cold_start, cold_end;        /* nor one into here */
  int64_t displacement;
  uint32_t function;
  uint8_t kind, condition, jump, is_stepped;
  uint8_t base, index, scale;
  uint8_t is_untimed;                   /* an entry of a function whose exits are not known */
  uint32_t unused;
};

struct uprobe_row {                     /* sums of a function, all since the start */
  uint64_t calls;
  uint64_t finished;
  uint64_t unwound;                     /* left by an exception or a longjmp, or never to be finished */
  uint64_t untimed;                     /* entries whose latency could not be followed */
  uint64_t total_ns, raw_ns;            /* of the finished; raw: with what the probes cost */
  uint64_t inverted_least_ns, most_ns;  /* ~least, so that 0 means none */
};

struct uprobe_histogram {
  uint64_t buckets[UPROBE_BUCKETS];
};

struct uprobe_frame {
  uint64_t sp;                          /* at the entry: where the return address lies */
  uint64_t start_ns;
  uint64_t nested_ns;                   /* what the probes of the calls inside this one cost */
  uint32_t function;
  uint32_t is_stepped;
};

struct uprobe_thread {
  uint32_t depth;
  uint32_t continues;                   /* a UPROBE_CONTINUE was the last that happened */
  struct uprobe_frame frames[UPROBE_MAX_DEPTH];
};

enum uprobe_end { UPROBE_FINISHED, UPROBE_UNWOUND, UPROBE_OPEN, UPROBE_THREAD_ENDED };

struct uprobe_call {                    /* in the ring */
  uint64_t start_ns, end_ns;            /* as they were, with what the probes cost */
  uint64_t latency_ns;                  /* without it */
  uint32_t pid, tid;
  uint32_t function;
  uint32_t end;                         /* enum uprobe_end */
  char comm[16];
};

struct uprobe_caller_key {
  uint64_t address;                     /* that the call returns to */
  uint32_t function;
  uint32_t pid;
};
struct uprobe_caller {
  uint64_t calls;
  uint64_t file_offset, inode;          /* inode 0: not known */
  uint32_t device;                      /* as the kernel has it: major << 20 | minor */
  uint32_t unused;
};

static inline __attribute__((always_inline)) uint32_t uprobe_bucket(uint64_t ns) {
  if (ns < UPROBE_SUBS) return (uint32_t)ns;
  if (ns >> (UPROBE_TOP_BIT + 1)) return UPROBE_BUCKETS - 1;
  uint64_t rest = ns;
  uint32_t log = 0;
  if (rest >> 32) { rest >>= 32; log += 32; }
  if (rest >> 16) { rest >>= 16; log += 16; }
  if (rest >> 8) { rest >>= 8; log += 8; }
  if (rest >> 4) { rest >>= 4; log += 4; }
  if (rest >> 2) { rest >>= 2; log += 2; }
  if (rest >> 1) log += 1;
  return (log - UPROBE_SUB_BITS + 1) * UPROBE_SUBS + (uint32_t)(ns >> (log - UPROBE_SUB_BITS) & (UPROBE_SUBS - 1));
}

#endif
