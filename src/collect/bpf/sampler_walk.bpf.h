/* The walk of user_walk.h over the maps, and mappings that user space has not told of yet. Part of sampler.bpf.c. */
#ifndef CPROF_SAMPLER_WALK_BPF_H
#define CPROF_SAMPLER_WALK_BPF_H

#include "collect/bpf/sampler_state.bpf.h"

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
SAMPLER_INLINE int walk_read(void *context, uint64_t address, uint64_t *value) {
  (void)context;
  return bpf_probe_read_user(value, sizeof(*value), (void *)address) != 0;
}

/* Before 5.12 a global function takes no pointers: there the verifier follows each call. */
#ifdef SAMPLER_FOR_5_10
#define WALK_FUNCTION static __attribute__((noinline))
#else
#define WALK_FUNCTION __attribute__((noinline))
#endif
#include "collect/bpf/user_walk.h"

/* on_switch may be interrupted by on_sample: each has its own. */
enum slot { SLOT_SAMPLE = 0, SLOT_SWITCH, SLOTS };

struct scratch {
  struct user_walk walk;                /* first: walk_learn finds the rest by it */
  uint64_t image;                       /* of the process, as sampler_learned has it */
  uint64_t seen_ns;                     /* what user space has told of the process is as new as this */
  uint32_t pid;
  uint32_t has_looked;                  /* bpf_find_vma works once in a program's run */
  struct pt_regs registers;             /* where they cannot be read in their place */
  struct sampler_sample sample;
  uint64_t budget_start;
  uint32_t budget_used;
  uint32_t unused;
  struct sampler_stack stack;
};

#define PERCPU_OF(name, entries, type_of_value) \
  struct { \
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
    __uint(max_entries, entries); \
    __type(key, uint32_t); \
    __type(value, type_of_value); \
  } name SEC(".maps")

PERCPU_OF(scratches, SLOTS, struct scratch);
PERCPU_OF(snapshots, SLOTS, struct sampler_snapshot);
PERCPU_OF(learning, SLOTS, struct sampler_learned);
PERCPU_OF(own_stack, 1, uint64_t);
PERCPU_OF(counters, SAMPLER_COUNTERS, uint64_t);

SAMPLER_INLINE void count(uint32_t which) {
  uint64_t *counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) ++*counter;
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

SAMPLER_INLINE int is_half_full(void *ring) {
  return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > settings.ring_bytes / 2;
}

/* Readers look by the clock; they are woken when the ring runs full, and when somebody waits for an answer. */
SAMPLER_INLINE uint64_t wakeup_for(void *ring) {
  return is_half_full(ring) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
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

/* No bpf_find_vma: user space unwinds what it has not told of yet. */
static int walk_learn(struct user_walk *walk, uint64_t pc) {
  (void)walk, (void)pc;
  return 0;
}

#else

struct found_code {
  uint64_t start, end, offset;
  struct sampler_file_key file;
  uint32_t is_code;
  uint32_t unused;
};

static long note_vma(struct task_struct *task, struct vm_area_struct *vma, void *context) {
  (void)task;
  struct found_code *found = context;
  found->start = vma->vm_start;
  found->end = vma->vm_end;
  found->offset = vma->vm_pgoff << CP_PAGE_BITS;
  found->is_code = (vma->vm_flags & CPROF_VM_EXEC) != 0;
  struct file *file = vma->vm_file;
  if (!file) return 0;
  found->file.inode = file->f_inode->i_ino;
  found->file.device = file->f_inode->i_sb->s_dev;
  return 0;
}

SAMPLER_INLINE int is_valid(const struct sampler_learned *known, const struct scratch *scratch) {
  return known && known->image == scratch->image && known->last_ns > scratch->seen_ns;
}

SAMPLER_INLINE int recall(struct scratch *scratch, uint64_t pc) {
  const struct sampler_learned *known = bpf_map_lookup_elem(&learned, &scratch->pid);
  if (!is_valid(known, scratch)) return 0;
  for (uint32_t i = 0; i < SAMPLER_MAX_LEARNED; i++) {
    if (i >= known->count) break;
    if (!walk_is_in(&known->mappings[i], pc)) continue;
    scratch->walk.found = known->mappings[i];
    return 1;
  }
  return 0;
}

/* The whole value is replaced at once, so that no reader sees half of it. */
SAMPLER_INLINE void remember(struct scratch *scratch, uint32_t slot) {
  struct sampler_learned *fresh = bpf_map_lookup_elem(&learning, &slot);
  const struct sampler_learned *known = bpf_map_lookup_elem(&learned, &scratch->pid);
  if (!fresh) return;
  if (is_valid(known, scratch)) *fresh = *known;
  else fresh->count = 0;
  fresh->image = scratch->image;
  fresh->last_ns = bpf_ktime_get_ns();
  uint32_t place = fresh->count;
  if (place >= SAMPLER_MAX_LEARNED) return;
  fresh->mappings[place] = scratch->walk.found;
  fresh->count = place + 1;
  if (bpf_map_update_elem(&learned, &scratch->pid, fresh, BPF_ANY) == 0) count(SAMPLER_LEARNED);
}

/* A global function, as three places call it. 1: walk.found holds the mapping. */
__attribute__((noinline)) int learn_mapping(uint32_t slot, uint64_t pc) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  if (!scratch) return 0;
  if (recall(scratch, pc)) return 1;
  if (scratch->has_looked) return 0;
  scratch->has_looked = 1;
  struct found_code found = {};
  long error = bpf_find_vma(current_task(), pc, note_vma, &found, 0);
  if (error == -16) count(SAMPLER_FIND_VMA_BUSY);  /* EBUSY */
  if (error && error != -2) return 0;              /* ENOENT: nothing is there */
  if (error || !found.is_code) {
    scratch->walk.surely_unmapped = 1;
    return 0;
  }
  const uint32_t *module = found.file.inode ? bpf_map_lookup_elem(&files, &found.file) : 0;
  if (!module) return 0;
  struct sampler_mapping *mapping = &scratch->walk.found;
  mapping->start = found.start;
  mapping->end = found.end;
  mapping->bias = found.start - found.offset;
  mapping->module = *module;
  mapping->flags = 0;
  remember(scratch, slot);
  return 1;
}

static int walk_learn(struct user_walk *walk, uint64_t pc) {
  return settings.learn ? learn_mapping(walk->context, pc) : 0;
}

#endif

/* One frame; 1: done. A global function: the verifier looks at it once, whatever calls it. */
__attribute__((noinline)) int walk_frame(uint32_t slot) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  return scratch ? walk_advance(&scratch->walk, scratch->stack.addresses) : 1;
}

#ifdef SAMPLER_FOR_5_10

SAMPLER_INLINE void walk_frames(uint32_t slot) {
  for (int i = 0; i < SAMPLER_MAX_DEPTH + 1; i++)
    if (walk_frame(slot)) break;
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
