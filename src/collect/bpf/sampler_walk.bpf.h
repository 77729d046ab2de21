/* The walk of user_walk.h over the maps, and mappings that user space has not told of yet. Part of
 * the BPF programs that walk. */
#ifndef CPROF_SAMPLER_WALK_BPF_H
#define CPROF_SAMPLER_WALK_BPF_H

#include "collect/bpf/walk_maps.bpf.h"

SAMPLER_INLINE const uint32_t *walk_chunk(uint32_t chunk) {
  uint32_t first = 0;
  void *inner = bpf_map_lookup_elem(&store, &chunk);
  struct chunk *found = inner ? bpf_map_lookup_elem(inner, &first) : 0;
  return found ? found->words : 0;
}
SAMPLER_INLINE const cp_rule *walk_rule(uint32_t index) {
  return bpf_map_lookup_elem(&rules, &index);
}
SAMPLER_INLINE const struct sampler_module *walk_module(uint32_t index) {
  return bpf_map_lookup_elem(&modules, &index);
}
SAMPLER_INLINE const struct sampler_mapping *walk_mapping(uint32_t index) {
  return bpf_map_lookup_elem(&mappings, &index);
}
SAMPLER_INLINE int walk_read(uint64_t address, uint64_t *value) {
  return bpf_probe_read_user(value, sizeof(*value), (void *)address) != 0;
}
SAMPLER_INLINE int walk_read_some(uint64_t address, uint64_t *words, uint32_t bytes) {
  return bpf_probe_read_user(words, bytes, (void *)address) != 0;
}

/* Before 5.12 a global function takes no pointers: there the verifier follows each call. */
#ifdef SAMPLER_FOR_5_10
#define WALK_FUNCTION static __attribute__((noinline))
#else
#define WALK_FUNCTION __attribute__((noinline))
#endif
#include "collect/bpf/user_walk.h"

/* A search in the kernel's tree of mappings. */
struct vma_search {
  uint64_t address;
  uint64_t node;                        /* as the tree names it: its place, and in the low bits its kind */
  uint64_t vma;                         /* what the leaf has for the address; 0: nothing */
  uint64_t vma_at;                      /* where the leaf has it; 0: no leaf was reached */
  uint64_t words[32];                   /* the node */
};

/* on_switch may be interrupted by on_sample: each has its own. */
enum slot { SLOT_SAMPLE = 0, SLOT_SWITCH, SLOTS = SAMPLER_SLOTS };

struct scratch {
  struct user_walk walk;                /* its context is the slot, by which what it calls finds the rest */
  uint64_t seen_ns;                     /* what user space has told of the process is as new as this */
  struct pt_regs registers;             /* where they cannot be read in their place */
  struct sampler_sample sample;
  uint64_t budget_start;
  uint32_t budget_used;
  uint32_t is_taken;                    /* by a program that another one of its kind may interrupt */
  struct vma_search search;
  struct walk_memory memory;
  struct sampler_stack stack;
};

/* One for each slot of each CPU (place_of); user space makes it as long as there are CPUs. The value of a per-CPU map could
 * not be so large. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, SLOTS);
  __type(key, uint32_t);
  __type(value, struct scratch);
} scratches SEC(".maps");

SAMPLER_INLINE uint32_t place_of(enum slot slot) { return bpf_get_smp_processor_id() * SLOTS + slot; }

PERCPU_OF(snapshots, SLOTS, struct sampler_snapshot);
PERCPU_OF(own_stack, 1, uint64_t);
PERCPU_OF(counters, SAMPLER_COUNTERS, uint64_t);

SAMPLER_INLINE void count(uint32_t which) {
  uint64_t *counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) __sync_fetch_and_add(counter, 1);  /* a program may be preempted by another one of its CPU */
}

/* The verifier sees the bound: the compiler may not prove it away or test a copy. */
SAMPLER_INLINE uint64_t at_most(uint64_t value, uint64_t most) {
  asm volatile("" : "+r"(value));
  if (value > most) value = most;
  asm volatile("" : "+r"(value));
  return value;
}

SAMPLER_INLINE void *ring_of_this_cpu(void) {
  uint32_t cpu = bpf_get_smp_processor_id();
  void *ring = bpf_map_lookup_elem(&rings, &cpu);
  if (!ring) count(SAMPLER_NO_RING);
  return ring;
}

SAMPLER_INLINE int holds_more(void *ring, uint64_t bytes) {
  return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > bytes;
}

/* Readers look by the clock; they are woken when the ring fills, and when somebody waits for an answer. */
SAMPLER_INLINE uint64_t wakeup_for(void *ring) {
  return holds_more(ring, settings.ring_bytes / 4) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static void walk_want_module(struct user_walk *walk, uint32_t index) {
  struct sampler_module *module = bpf_map_lookup_elem(&modules, &index);
  if (!module || module->asked) return;
  void *ring = ring_of_this_cpu();
  if (!ring) return;
  uint64_t ids = bpf_get_current_pid_tgid();
  struct sampler_header wanted = {.type = SAMPLER_WANT_MODULE, .cpu = bpf_get_smp_processor_id(), .time_ns = bpf_ktime_get_ns(),
                                  .pid = ids >> 32, .tid = (uint32_t)ids, .stack = index};
  if (bpf_ringbuf_output(ring, &wanted, sizeof(wanted), BPF_RB_FORCE_WAKEUP) == 0) module->asked = 1;
}

#ifdef SAMPLER_FOR_5_10

/* User space unwinds what it has not told of yet. */
SAMPLER_INLINE int can_look_up(void) { return 0; }

static int walk_learn(struct user_walk *walk, uint64_t pc) {
  (void)walk, (void)pc;
  return 0;
}

#else

#include "collect/bpf/sampler_vma.bpf.h"

SAMPLER_INLINE int can_look_up(void) { return bpf_core_field_exists(((struct mm_struct *)0)->mm_mt); }

static int walk_learn(struct user_walk *walk, uint64_t pc) { return look_up_mapping(walk->context, pc); }

#endif

/* One frame; 1: done. A global function: the verifier looks at it once, whatever calls it. */
__attribute__((noinline)) int walk_frame(uint32_t slot) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  return scratch ? walk_advance(&scratch->walk, scratch->stack.addresses, &scratch->memory) : 1;
}

#ifdef SAMPLER_FOR_5_10

#define WALK_ROUND 64

/* In rounds, since the verifier follows loops, each turn and each way out of it. 1: done. */
__attribute__((noinline)) int walk_round(uint32_t slot) {
  for (int i = 0; i < WALK_ROUND; i++)
    if (walk_frame(slot)) return 1;
  return 0;
}

SAMPLER_INLINE void walk_frames(uint32_t slot) {
  for (int i = 0; i < SAMPLER_MAX_DEPTH / WALK_ROUND + 1; i++)
    if (walk_round(slot)) break;
}

#else

static long walk_frame_again(uint32_t index, void *slot) {
  int is_over = walk_frame(*(uint32_t *)slot);
  asm volatile("" : "+r"(is_over));  /* the verifier does not know that it is 0 or 1 */
  return is_over != 0;
}

SAMPLER_INLINE void walk_frames(uint32_t slot) { bpf_loop(SAMPLER_MAX_DEPTH + 1, walk_frame_again, &slot, 0); }

#endif

#endif
