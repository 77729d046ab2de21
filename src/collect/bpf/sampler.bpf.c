// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The sampler inside the kernel. on_sample runs at each overflow of a perf event, on_switch at each context switch: both
 * drop what is not wanted first, walk the user stack by the tables in the maps, take the kernel's stack, and write a
 * record to the ring of their CPU. A stack is written once per process image (define_stack) and named by its id then.
 * All memory is preallocated and no helper takes a lock it could hold already: on_sample may run in an NMI.
 * What cannot be done is counted, never passed over.
 */
#include "collect/bpf/kernel_types.h"

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "collect/bpf/sampler_abi.h"
#include "unwind/core/unwind_rows.h"

char sampler_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct sampler_settings settings SEC(".rodata.settings") = {};
struct sampler_control control SEC(".data.control") = {};

/* ---- maps ---- */

#define ARRAY_OF(name, entries, type_of_value) \
  struct { \
    __uint(type, BPF_MAP_TYPE_ARRAY); \
    __uint(map_flags, BPF_F_MMAPABLE); \
    __uint(max_entries, entries); \
    __type(key, uint32_t); \
    __type(value, type_of_value); \
  } name SEC(".maps")

#define HASH_OF(name, entries, type_of_key, type_of_value) \
  struct { \
    __uint(type, BPF_MAP_TYPE_HASH); \
    __uint(max_entries, entries); \
    __type(key, type_of_key); \
    __type(value, type_of_value); \
  } name SEC(".maps")

struct chunk {
  uint32_t words[SAMPLER_CHUNK_WORDS];
};
struct store_chunk {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(uint32_t));
  __uint(value_size, sizeof(struct chunk));
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, SAMPLER_MAX_CHUNKS);
  __type(key, uint32_t);
  __array(values, struct store_chunk);
} store SEC(".maps");

struct cpu_ring {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, SAMPLER_RING_BYTES);
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, SAMPLER_MAX_CPUS);
  __type(key, uint32_t);
  __array(values, struct cpu_ring);
} rings SEC(".maps");

ARRAY_OF(rules, SAMPLER_MAX_RULES, cp_rule);
ARRAY_OF(modules, SAMPLER_MAX_MODULES, struct sampler_module);
ARRAY_OF(mappings, SAMPLER_MAX_MAPPINGS, struct sampler_mapping);
ARRAY_OF(sent, SAMPLER_SENT_SLOTS, uint64_t);
HASH_OF(processes, SAMPLER_MAX_PROCESSES, uint32_t, struct sampler_process);
HASH_OF(execs, SAMPLER_MAX_PROCESSES, uint32_t, uint64_t);
HASH_OF(tasks, SAMPLER_MAX_TASKS, uint32_t, struct sampler_task);
HASH_OF(files, SAMPLER_MAX_MODULES, struct sampler_file_key, uint32_t);
HASH_OF(learned, SAMPLER_LEARNING_PROCESSES, uint32_t, struct sampler_learned);
HASH_OF(counts_0, SAMPLER_MAX_COUNTS, struct sampler_count_key, struct sampler_count);
HASH_OF(counts_1, SAMPLER_MAX_COUNTS, struct sampler_count_key, struct sampler_count);
HASH_OF(waits, SAMPLER_MAX_TASKS, uint32_t, struct sampler_wait);

struct {
  __uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint32_t);
} cgroup SEC(".maps");

/* ---- what the walk needs ---- */

static inline __attribute__((always_inline)) const uint32_t *walk_chunk(uint32_t chunk) {
  uint32_t first = 0;
  void *inner = bpf_map_lookup_elem(&store, &chunk);
  struct chunk *found = inner ? bpf_map_lookup_elem(inner, &first) : 0;
  return found ? found->words : 0;
}
static inline __attribute__((always_inline)) const cp_rule *walk_rule(uint32_t index) {
  return bpf_map_lookup_elem(&rules, &index);
}
static inline __attribute__((always_inline)) const struct sampler_module *walk_module(uint32_t index) {
  return bpf_map_lookup_elem(&modules, &index);
}
static inline __attribute__((always_inline)) const struct sampler_mapping *walk_mapping(uint32_t index) {
  return bpf_map_lookup_elem(&mappings, &index);
}
static inline __attribute__((always_inline)) int walk_read(void *context, uint64_t address, uint64_t *value) {
  (void)context;
  return bpf_probe_read_user(value, sizeof(*value), (void *)address) != 0;
}

#include "collect/bpf/user_walk.h"

/* on_switch may be interrupted by on_sample: each has its own. */
enum slot { SLOT_SAMPLE = 0, SLOT_SWITCH, SLOTS };

struct scratch {
  struct user_walk walk;                /* first: walk_learn finds the rest by it */
  uint64_t image;                       /* of the process, as sampler_learned has it */
  uint64_t seen_ns;                     /* what user space has told of the process is as new as this */
  uint32_t pid;
  uint32_t has_looked;                  /* bpf_find_vma works once in a program's run */
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
PERCPU_OF(snapshots, 1, struct sampler_snapshot);
PERCPU_OF(learning, SLOTS, struct sampler_learned);
PERCPU_OF(own_stack, 1, uint64_t);
PERCPU_OF(counters, SAMPLER_COUNTERS, uint64_t);

static inline __attribute__((always_inline)) void count(uint32_t which) {
  uint64_t *counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) ++*counter;
}

/* The verifier sees the bound: the compiler may not prove it away or test a copy. */
static inline __attribute__((always_inline)) uint64_t at_most(uint64_t value, uint64_t most) {
  asm volatile("" : "+r"(value));
  if (value > most) value = most;
  asm volatile("" : "+r"(value));
  return value;
}

static inline __attribute__((always_inline)) void *ring_of_this_cpu(void) {
  uint32_t cpu = bpf_get_smp_processor_id();
  void *ring = bpf_map_lookup_elem(&rings, &cpu);
  if (!ring) count(SAMPLER_NO_RING);
  return ring;
}

static inline __attribute__((always_inline)) int is_half_full(void *ring) {
  return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > SAMPLER_RING_BYTES / 2;
}

/* Readers look by the clock; they are woken when the ring runs full, and when somebody waits for an answer. */
static inline __attribute__((always_inline)) uint64_t wakeup_for(void *ring) {
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

/* ---- mappings that user space has not told of yet ---- */

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

static inline __attribute__((always_inline)) int is_valid(const struct sampler_learned *known, const struct scratch *scratch) {
  return known && known->image == scratch->image && known->last_ns > scratch->seen_ns;
}

static inline __attribute__((always_inline)) int recall(struct scratch *scratch, uint64_t pc) {
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
static inline __attribute__((always_inline)) void remember(struct scratch *scratch, uint32_t slot) {
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
  long error = bpf_find_vma(bpf_get_current_task_btf(), pc, note_vma, &found, 0);
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

/* One frame; 1: done. A global function: the verifier looks at it once, whatever calls it. */
__attribute__((noinline)) int walk_frame(uint32_t slot) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  return scratch ? walk_advance(&scratch->walk, scratch->stack.addresses) : 1;
}

static long walk_frame_again(uint32_t index, void *slot) {
  int is_over = walk_frame(*(uint32_t *)slot);
  asm volatile("" : "+r"(is_over));  /* the verifier does not know that it is 0 or 1 */
  return is_over != 0;
}

/* ---- the stack of the current task ---- */

static inline __attribute__((always_inline)) void copy_registers(struct user_walk *walk, const struct pt_regs *from) {
  uint64_t *to = walk->registers;
  to[0] = from->ax, to[1] = from->dx, to[2] = from->cx, to[3] = from->bx, to[4] = from->si, to[5] = from->di;
  to[6] = from->bp, to[7] = from->sp, to[8] = from->r8, to[9] = from->r9, to[10] = from->r10, to[11] = from->r11;
  to[12] = from->r12, to[13] = from->r13, to[14] = from->r14, to[15] = from->r15, to[16] = from->ip;
  walk->pc = from->ip;
  walk->sp = from->sp;
  walk->fp = from->bp;
}

/* Mappings that user space saw before the last exec are another program's. */
static inline __attribute__((always_inline)) const struct sampler_process *process_of(uint32_t pid) {
  const struct sampler_process *process = bpf_map_lookup_elem(&processes, &pid);
  if (!process) return 0;
  const uint64_t *exec_ns = bpf_map_lookup_elem(&execs, &pid);
  return exec_ns && *exec_ns > process->seen_ns ? 0 : process;
}

static inline __attribute__((always_inline)) void begin_walk(struct scratch *scratch, struct task_struct *task, uint32_t pid, uint32_t slot) {
  struct user_walk *walk = &scratch->walk;
  const struct sampler_process *process = process_of(pid);
  walk->depth = walk->first = walk->count = 0;
  walk->end = SAMPLER_END_NO_REGISTERS;
  walk->wants_snapshot = 0;
  walk->exact = walk->registers_known = 1;
  walk->found.start = walk->found.end = 0;
  walk->context = slot;
  walk->max_depth = settings.max_depth;
  walk->hash = walk_mix(walk_mix(pid + 1, task->group_leader->start_boottime), task->self_exec_id);
  scratch->stack.epoch = 0;
  scratch->image = walk->hash;
  scratch->seen_ns = 0;
  scratch->pid = pid;
  scratch->has_looked = 0;
  if (!process) return;
  scratch->seen_ns = process->seen_ns;
  walk->first = process->first;
  walk->count = process->count;
  walk->hash = walk_mix(walk->hash, process->epoch);
  scratch->stack.epoch = process->epoch;
}

/* As the kernel walks frame pointers. Where that ended nobody can tell. */
static inline __attribute__((always_inline)) void walk_frame_pointers(struct scratch *scratch, void *context) {
  long bytes = bpf_get_stack(context, scratch->stack.addresses, SAMPLER_MAX_KERNEL * sizeof(uint64_t), BPF_F_USER_STACK);
  scratch->walk.end = SAMPLER_END_UNKNOWN;
  if (bytes > 0) scratch->walk.depth = (uint32_t)bytes / sizeof(uint64_t);
}

/* Needs begin_walk(). */
static inline __attribute__((always_inline)) void walk_user(struct scratch *scratch, struct task_struct *task, void *context,
                                                            uint32_t slot) {
  struct user_walk *walk = &scratch->walk;
  if (settings.user_stacks == SAMPLER_USER_NONE || !task->mm || task->flags & CPROF_PF_KTHREAD) return;
  if (settings.user_stacks == SAMPLER_USER_FRAME_POINTERS) {
    walk_frame_pointers(scratch, context);
    return;
  }
  struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(task);
  copy_registers(walk, registers);
  if (*(uint16_t *)&registers->cs != CPROF_USER_CS) {
    scratch->stack.addresses[0] = walk->pc;
    walk->depth = 1;
    walk->end = SAMPLER_END_UNSUPPORTED_ABI;
    return;
  }
  /* Inside exec the registers may be the old image's and the memory the new one's. */
  if (bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve)) {
    walk->end = SAMPLER_END_EXEC;
    walk->wants_snapshot = 1;
    return;
  }
  bpf_loop(SAMPLER_MAX_DEPTH + 1, walk_frame_again, &slot, 0);
}

static inline __attribute__((always_inline)) void walk_kernel(struct scratch *scratch, void *context, uint64_t skip) {
  struct sampler_stack *stack = &scratch->stack;
  uint64_t user = at_most(scratch->walk.depth, SAMPLER_MAX_DEPTH);
  stack->user = (uint32_t)user;
  stack->kernel = 0;
  if (!settings.kernel_stacks) return;
  long bytes = bpf_get_stack(context, &stack->addresses[user], SAMPLER_MAX_KERNEL * sizeof(uint64_t), skip);
  if (bytes > 0) stack->kernel = (uint32_t)bytes / sizeof(uint64_t);
}

/* Into the hash goes what the walk has not put there already. A global function for the same reason as walk_frame. */
__attribute__((noinline)) int hash_rest(uint32_t slot) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  if (!scratch) return 0;
  uint64_t hash = walk_mix(scratch->walk.hash, scratch->walk.end);
  uint64_t from = scratch->walk.end == SAMPLER_END_UNKNOWN ? 0 : at_most(scratch->stack.user, SAMPLER_MAX_DEPTH);
  uint32_t end = scratch->stack.user + scratch->stack.kernel;
  for (uint32_t i = 0; i < 2 * SAMPLER_MAX_KERNEL; i++) {
    uint64_t at = at_most(from + i, SAMPLER_MAX_DEPTH + SAMPLER_MAX_KERNEL);
    if (at >= end) break;
    hash = walk_mix(hash, scratch->stack.addresses[at]);
  }
  scratch->walk.hash = hash ? hash : 1;
  return 0;
}

/* The stack's id; the stack itself is written unless it has been. 0: it could not be written. The place is taken only
 * after the record is out, so that no other CPU names a stack that is not there yet. */
static inline __attribute__((always_inline)) uint64_t define_stack(struct scratch *scratch, void *ring, uint32_t slot) {
  struct sampler_stack *stack = &scratch->stack;
  hash_rest(slot);
  uint64_t id = scratch->walk.hash;
  uint32_t place = (uint32_t)id % SAMPLER_SENT_SLOTS;
  uint64_t *known = bpf_map_lookup_elem(&sent, &place);
  if (!known) return 0;
  if (*(volatile uint64_t *)known == id) return id;
  stack->header = scratch->sample.header;
  stack->header.type = SAMPLER_STACK;
  stack->header.stack = id;
  stack->end = scratch->walk.end;
  uint64_t words = at_most((uint64_t)stack->user + stack->kernel, SAMPLER_MAX_DEPTH + SAMPLER_MAX_KERNEL);
  uint64_t bytes = __builtin_offsetof(struct sampler_stack, addresses) + words * sizeof(uint64_t);
  if (bpf_ringbuf_output(ring, stack, bytes, wakeup_for(ring))) {
    count(SAMPLER_RING_FULL_STACKS);
    return 0;
  }
  *(volatile uint64_t *)known = id;
  return id;
}

/* ---- samples that user space has to unwind ---- */

/* They leave half of the ring to what is small. */
static inline __attribute__((always_inline)) int take_budget(struct scratch *scratch, void *ring) {
  uint64_t now = scratch->sample.header.time_ns;
  if (now - scratch->budget_start > 1000000000ull) {
    scratch->budget_start = now;
    scratch->budget_used = 0;
  }
  if (scratch->budget_used < SAMPLER_SNAPSHOTS_PER_SECOND && !is_half_full(ring)) {
    scratch->budget_used++;
    return 1;
  }
  count(SAMPLER_SNAPSHOTS_OVER_BUDGET);
  return 0;
}

/* Nothing that a walk needs lies above: main's stack begins where exec put its arguments, and a thread's C library keeps
 * the thread's own data, to which fs points, at the top of its stack. */
static inline __attribute__((always_inline)) uint64_t bytes_below_top(struct task_struct *task, uint64_t sp) {
  uint64_t main_top = task->mm->start_stack, thread_top = task->thread.fsbase;
  uint64_t most = SAMPLER_SNAPSHOT_BYTES;
  if (main_top >= sp && main_top - sp < most) most = main_top - sp;
  if (task->pid != task->tgid && thread_top >= sp && thread_top - sp < most) most = thread_top - sp;
  return most;
}

/* As much of the stack as there is and fits, up to an address that cannot be read. */
static inline __attribute__((always_inline)) uint32_t copy_stack(struct sampler_snapshot *snapshot, uint64_t sp, uint64_t most) {
  const uint32_t piece = 1024;
  uint64_t at = at_most(piece - (sp & (piece - 1)), piece);
  if (bpf_probe_read_user(snapshot->stack, (uint32_t)at, (void *)sp)) return 0;
  for (int i = 0; i < SAMPLER_SNAPSHOT_BYTES / 1024 - 1; i++) {
    at = at_most(at, SAMPLER_SNAPSHOT_BYTES - piece);
    if (at >= most || bpf_probe_read_user(&snapshot->stack[at], piece, (void *)(sp + at))) break;
    at += piece;
  }
  return (uint32_t)at;
}

/* 0: it could not be written. */
static inline __attribute__((always_inline)) int send_snapshot(struct scratch *scratch, void *context, void *ring) {
  uint32_t first = 0;
  struct sampler_snapshot *snapshot = bpf_map_lookup_elem(&snapshots, &first);
  if (!snapshot) return 0;
  snapshot->sample = scratch->sample;
  snapshot->sample.header.type = SAMPLER_SNAPSHOT;
  snapshot->reason = scratch->walk.end;
  snapshot->kernel = 0;
  if (settings.kernel_stacks) {
    long bytes = bpf_get_stack(context, snapshot->addresses, sizeof(snapshot->addresses), 0);
    if (bytes > 0) snapshot->kernel = (uint32_t)bytes / sizeof(uint64_t);
  }
  for (int i = 0; i < SAMPLER_REGISTERS; i++) snapshot->registers[i] = scratch->walk.registers[i];
  uint64_t sp = scratch->walk.registers[7];
  uint64_t bytes = at_most(copy_stack(snapshot, sp, bytes_below_top(bpf_get_current_task_btf(), sp)), SAMPLER_SNAPSHOT_BYTES);
  snapshot->stack_bytes = (uint32_t)bytes;
  if (!bpf_ringbuf_output(ring, snapshot, __builtin_offsetof(struct sampler_snapshot, stack) + bytes, wakeup_for(ring))) return 1;
  count(SAMPLER_RING_FULL_SNAPSHOTS);
  return 0;
}

/* ---- which tasks ---- */

static inline __attribute__((always_inline)) int is_wanted(uint32_t tid) {
  if (settings.filter == SAMPLER_ALL) return 1;
  if (settings.filter == SAMPLER_CGROUP) return bpf_current_task_under_cgroup(&cgroup, 0) == 1;
  const struct sampler_task *task = bpf_map_lookup_elem(&tasks, &tid);
  return task && task->on;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  uint32_t parent_tid = (uint32_t)parent->pid, child_tid = (uint32_t)child->pid;
  uint32_t parent_pid = (uint32_t)parent->tgid, child_pid = (uint32_t)child->tgid;
  if (settings.filter == SAMPLER_TASKS) {
    const struct sampler_task *task = bpf_map_lookup_elem(&tasks, &parent_tid);
    if (!task || !settings.inherit) return 0;
    struct sampler_task same = *task;
    if (bpf_map_update_elem(&tasks, &child_tid, &same, BPF_ANY)) count(SAMPLER_TASKS_FULL);
  }
  if (child_pid == parent_pid) return 0;
  /* The child has its parent's mappings, and the parent's doubts about them. */
  const struct sampler_process *process = process_of(parent_pid);
  bpf_map_delete_elem(&execs, &child_pid);
  if (!process) return 0;
  struct sampler_process copy = *process;
  if (bpf_map_update_elem(&processes, &child_pid, &copy, BPF_ANY)) count(SAMPLER_PROCESSES_FULL);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid) {
  uint32_t tid = (uint32_t)task->pid, pid = (uint32_t)task->tgid, old = (uint32_t)old_tid;
  if (settings.filter == SAMPLER_TASKS) {
    struct sampler_task on = {.on = 1};
    if (!bpf_map_lookup_elem(&tasks, &old) && !bpf_map_lookup_elem(&tasks, &tid)) return 0;
    if (old != tid) bpf_map_delete_elem(&tasks, &old);
    if (bpf_map_update_elem(&tasks, &tid, &on, BPF_ANY)) count(SAMPLER_TASKS_FULL);
  }
  uint64_t now = bpf_ktime_get_ns();
  bpf_map_delete_elem(&processes, &pid);
  if (bpf_map_update_elem(&execs, &pid, &now, BPF_ANY)) count(SAMPLER_PROCESSES_FULL);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid, pid = (uint32_t)task->tgid;
  bpf_map_delete_elem(&waits, &tid);
  if (settings.filter == SAMPLER_TASKS && bpf_map_delete_elem(&tasks, &tid)) return 0;
  if (task->signal->live.counter > 0) return 0;
  bpf_map_delete_elem(&processes, &pid);
  bpf_map_delete_elem(&execs, &pid);
  bpf_map_delete_elem(&learned, &pid);
  return 0;
}

/* ---- on-CPU ---- */

/* A thread runs on one CPU at a time, so nobody else adds to its counts. */
static inline __attribute__((always_inline)) void add_to(struct sampler_count *known, void *map, const struct sampler_count_key *key,
                                                         uint64_t weight) {
  struct sampler_count first = {.samples = 1, .weight = weight};
  if (known) {
    known->samples++;
    known->weight += weight;
  } else if (bpf_map_update_elem(map, key, &first, BPF_ANY)) {
    count(SAMPLER_COUNTS_FULL);
  }
}

static inline __attribute__((always_inline)) void count_sample(const struct sampler_sample *sample) {
  struct sampler_count_key key = {.stack = sample->header.stack, .pid = sample->header.pid, .tid = sample->header.tid,
                                  .metric = sample->metric, .in_kernel = sample->flags & SAMPLER_IN_KERNEL};
  if (control.counts) add_to(bpf_map_lookup_elem(&counts_1, &key), &counts_1, &key, sample->period);
  else add_to(bpf_map_lookup_elem(&counts_0, &key), &counts_0, &key, sample->period);
}

static inline __attribute__((always_inline)) void take_sample(struct bpf_perf_event_data *context, struct scratch *scratch,
                                                              void *ring) {
  struct task_struct *task = bpf_get_current_task_btf();
  struct sampler_sample *sample = &scratch->sample;
  begin_walk(scratch, task, sample->header.pid, SLOT_SAMPLE);
  walk_user(scratch, task, context, SLOT_SAMPLE);
  if (scratch->walk.wants_snapshot && settings.snapshots && take_budget(scratch, ring) && send_snapshot(scratch, context, ring)) return;
  walk_kernel(scratch, context, 0);
  sample->header.stack = define_stack(scratch, ring, SLOT_SAMPLE);
  if (settings.count_only) count_sample(sample);
  else if (bpf_ringbuf_output(ring, sample, sizeof(*sample), wakeup_for(ring))) count(SAMPLER_RING_FULL_SAMPLES);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *context) {
  uint64_t ids = bpf_get_current_pid_tgid();
  uint32_t tid = (uint32_t)ids, slot = SLOT_SAMPLE;
  if (!control.on || !is_wanted(tid)) return 0;
  uint64_t now = bpf_ktime_get_ns();
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  void *ring = ring_of_this_cpu();
  if (!scratch || !ring) return settings.let_through;
  struct sampler_sample *sample = &scratch->sample;
  sample->header.type = SAMPLER_SAMPLE;
  sample->header.cpu = bpf_get_smp_processor_id();
  sample->header.time_ns = now;
  sample->header.pid = ids >> 32;
  sample->header.tid = tid;
  sample->header.stack = 0;
  sample->ip = context->regs.ip;
  sample->period = context->sample_period;
  sample->metric = settings.metric == SAMPLER_METRIC_BY_COOKIE ? (uint32_t)bpf_get_attach_cookie(context) : settings.metric;
  sample->flags = context->regs.cs & 3 ? 0 : SAMPLER_IN_KERNEL;
  count(SAMPLER_SAMPLES);
  take_sample(context, scratch, ring);
  return settings.let_through;
}

/* ---- off-CPU ---- */

static inline __attribute__((always_inline)) int is_wanted_cpu(void) {
  if (!settings.some_cpus) return 1;
  uint32_t cpu = bpf_get_smp_processor_id();
  return cpu < SAMPLER_MAX_CPUS && settings.cpus[cpu / 64 % (SAMPLER_MAX_CPUS / 64)] >> (cpu % 64) & 1;
}

/* The preempt count, which would say it, cannot be reached where kallsyms has no data symbols. But an interrupt of kernel
 * code runs on a stack of its own, and so does this program then (through a map its address becomes a number that may be
 * compared); and one of user code leaves no system call's number behind. */
static inline __attribute__((always_inline)) int is_in_interrupt(struct task_struct *task) {
  uint32_t first = 0;
  uint64_t *place = bpf_map_lookup_elem(&own_stack, &first);
  if (!place) return 1;
  *(volatile uint64_t *)place = (uint64_t)&first;
  if (*(volatile uint64_t *)place - (uint64_t)task->stack >= CPROF_THREAD_SIZE) return 1;
  if (!task->mm || task->flags & CPROF_PF_KTHREAD) return 0;
  const struct pt_regs *registers = (const struct pt_regs *)bpf_task_pt_regs(task);
  return (int64_t)registers->orig_ax < 0;
}

static inline __attribute__((always_inline)) void tell_switch_in(struct sampler_wait *wait, uint32_t pid, uint32_t tid,
                                                                 uint64_t time_ns, void *ring) {
  struct sampler_switch in = {.woken_ns = wait->woken_ns, .waker_pid = wait->waker_pid, .waker_tid = wait->waker_tid};
  in.header.type = SAMPLER_SWITCH_IN;
  in.header.cpu = bpf_get_smp_processor_id();
  in.header.time_ns = time_ns;
  in.header.pid = pid;
  in.header.tid = tid;
  wait->out_ns = 0;
  if (bpf_ringbuf_output(ring, &in, sizeof(in), wakeup_for(ring))) count(SAMPLER_RING_FULL_SWITCHES);
}

static inline __attribute__((always_inline)) void leave_cpu(void *context, struct task_struct *task, bool preempted) {
  uint64_t ids = bpf_get_current_pid_tgid();
  uint32_t tid = (uint32_t)ids, slot = SLOT_SWITCH;
  if (!tid || !is_wanted_cpu() || !is_wanted(tid)) return;
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  void *ring = ring_of_this_cpu();
  if (!scratch || !ring) return;
  struct sampler_header *header = &scratch->sample.header;
  header->cpu = bpf_get_smp_processor_id();
  header->time_ns = bpf_ktime_get_ns();
  header->pid = ids >> 32;
  header->tid = tid;
  struct sampler_wait *wait = bpf_map_lookup_elem(&waits, &tid);
  if (!wait) {
    struct sampler_wait fresh = {};
    if (bpf_map_update_elem(&waits, &tid, &fresh, BPF_ANY)) count(SAMPLER_WAITS_FULL);
    wait = bpf_map_lookup_elem(&waits, &tid);
    if (!wait) return;
  }
  if (wait->out_ns) {
    /* Some kernels switch to a task without the tracepoint now and then (seen on a 6.18 for virtual machines). */
    count(SAMPLER_UNTRACED_SWITCHES);
    tell_switch_in(wait, header->pid, tid, wait->woken_ns ? wait->woken_ns : header->time_ns, ring);
  }
  begin_walk(scratch, task, header->pid, SLOT_SWITCH);
  walk_user(scratch, task, context, SLOT_SWITCH);
  walk_kernel(scratch, context, 2);  /* without ourselves and who called us */
  struct sampler_switch out = {.header = *header, .flags = preempted ? SAMPLER_PREEMPTED : 0};
  out.header.type = SAMPLER_SWITCH_OUT;
  out.header.stack = define_stack(scratch, ring, SLOT_SWITCH);
  if (bpf_ringbuf_output(ring, &out, sizeof(out), wakeup_for(ring))) {
    count(SAMPLER_RING_FULL_SWITCHES);
    return;
  }
  wait->woken_ns = 0;
  wait->waker_pid = wait->waker_tid = 0;
  wait->out_ns = header->time_ns;
}

static inline __attribute__((always_inline)) void enter_cpu(struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid;
  struct sampler_wait *wait = bpf_map_lookup_elem(&waits, &tid);
  if (!wait || !wait->out_ns) return;
  void *ring = ring_of_this_cpu();
  if (ring) tell_switch_in(wait, (uint32_t)task->tgid, tid, bpf_ktime_get_ns(), ring);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
  if (!control.on) return 0;
  leave_cpu(ctx, prev, preempt || prev->__state == 0);
  enter_cpu(next);
  return 0;
}

/* sched_waking is where the waker is; sched_wakeup may be on the CPU of the woken. In an interrupt nobody in particular
 * is the waker. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_wakeup, struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid;
  struct sampler_wait *wait = bpf_map_lookup_elem(&waits, &tid);
  if (!wait || !wait->out_ns || wait->woken_ns) return 0;
  uint64_t ids = is_in_interrupt(bpf_get_current_task_btf()) ? 0 : bpf_get_current_pid_tgid();
  wait->waker_pid = ids >> 32;
  wait->waker_tid = (uint32_t)ids;
  wait->woken_ns = bpf_ktime_get_ns();
  return 0;
}
