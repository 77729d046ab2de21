/* The stack of the current task: walked and defined once, or sent as it is for user space to unwind. Part of
 * the BPF programs that walk. */
#ifndef CPROF_SAMPLER_STACK_BPF_H
#define CPROF_SAMPLER_STACK_BPF_H

#include "collect/bpf/sampler_walk.bpf.h"

SAMPLER_INLINE void copy_registers(struct user_walk *walk, const struct pt_regs *from) {
  uint64_t *to = walk->registers;
  to[0] = from->ax, to[1] = from->dx, to[2] = from->cx, to[3] = from->bx, to[4] = from->si, to[5] = from->di;
  to[6] = from->bp, to[7] = from->sp, to[8] = from->r8, to[9] = from->r9, to[10] = from->r10, to[11] = from->r11;
  to[12] = from->r12, to[13] = from->r13, to[14] = from->r14, to[15] = from->r15, to[16] = from->ip;
  walk->pc = from->ip;
  walk->sp = from->sp;
  walk->fp = from->bp;
}

/* Mappings that user space saw before the last exec are another program's. */
SAMPLER_INLINE const struct sampler_process *process_of(uint32_t pid) {
  const struct sampler_process *process = bpf_map_lookup_elem(&processes, &pid);
  if (!process) return 0;
  const uint64_t *exec_ns = bpf_map_lookup_elem(&execs, &pid);
  return exec_ns && *exec_ns > process->seen_ns ? 0 : process;
}

/* The child has its parent's mappings, and the parent's doubts about them. */
SAMPLER_INLINE void follow_fork(uint32_t parent_pid, uint32_t child_pid) {
  const struct sampler_process *process = process_of(parent_pid);
  bpf_map_delete_elem(&execs, &child_pid);
  if (!process) {
    bpf_map_delete_elem(&processes, &child_pid);  /* of one that had this pid before */
    return;
  }
  struct sampler_process copy = *process;
  if (bpf_map_update_elem(&processes, &child_pid, &copy, BPF_ANY)) count(SAMPLER_PROCESSES_FULL);
}

/* A process's mappings stay after its exit, and when it executed: it is walked until it is gone, and user space lets go. */
SAMPLER_INLINE void follow_exec(uint32_t pid) {
  uint64_t now = bpf_ktime_get_ns();
  bpf_map_delete_elem(&processes, &pid);
  if (bpf_map_update_elem(&execs, &pid, &now, BPF_ANY)) count(SAMPLER_PROCESSES_FULL);
}

SAMPLER_INLINE void begin_walk(struct scratch *scratch, struct task_struct *task, uint32_t pid, uint32_t slot) {
  struct user_walk *walk = &scratch->walk;
  const struct sampler_process *process = process_of(pid);
  walk->depth = walk->first = walk->count = 0;
  walk->end = SAMPLER_END_NO_REGISTERS;
  walk->wants_snapshot = walk->through_eh_return = 0;
  walk->exact = walk->registers_known = 1;
  walk->found.start = walk->found.end = walk->owner = 0;
  scratch->memory.window_bytes = 0;
  walk->context = slot;
  walk->max_depth = settings.max_depth;
  walk->hash = walk_mix(walk_mix(pid + 1, FIELD(task, group_leader, start_boottime)), FIELD(task, self_exec_id));
  scratch->seen_ns = scratch->sample.header.time_ns;  /* what is not told is looked up now */
  if (!process) return;
  scratch->seen_ns = process->seen_ns;
  walk->first = process->first;
  walk->count = process->count;
  walk->owner = walk->hash = walk_mix(walk->hash, process->epoch);
}

/* As the kernel walks frame pointers. Where that ended nobody can tell. */
SAMPLER_INLINE void walk_frame_pointers(struct scratch *scratch, void *context) {
  long bytes = bpf_get_stack(context, scratch->stack.addresses, SAMPLER_MAX_KERNEL * sizeof(uint64_t), BPF_F_USER_STACK);
  scratch->walk.end = SAMPLER_END_UNKNOWN;
  if (bytes > 0) scratch->walk.depth = (uint32_t)bytes / sizeof(uint64_t);
}

SAMPLER_INLINE void end_in_exec(struct user_walk *walk) {
  walk->end = SAMPLER_END_EXEC;
  walk->depth = 0;
  walk->wants_snapshot = 0;
}

/* Inside exec the memory is first the old image's, as the registers are; then it is the new one's and the registers are
 * not; when it is filled, where its code ends is noted and the registers follow. What was told may be of either. 0: there
 * is nothing to walk by. */
SAMPLER_INLINE int begin_in_exec(struct scratch *scratch, struct task_struct *task) {
  scratch->walk.count = scratch->walk.owner = 0;
  scratch->seen_ns = scratch->sample.header.time_ns;
  if (FIELD(task, mm, end_code)) {
    if (can_look_up()) return 1;
    scratch->walk.end = SAMPLER_END_EXEC;
    scratch->walk.wants_snapshot = 1;
    return 0;
  }
  end_in_exec(&scratch->walk);
  return 0;
}

/* Needs begin_walk(). */
SAMPLER_INLINE void walk_user(struct scratch *scratch, struct task_struct *task, void *context, uint32_t slot) {
  struct user_walk *walk = &scratch->walk;
  if (settings.user_stacks == SAMPLER_USER_NONE || !FIELD(task, mm) || FIELD(task, flags) & CPROF_PF_KTHREAD) return;
  if (settings.user_stacks == SAMPLER_USER_FRAME_POINTERS) {
    walk_frame_pointers(scratch, context);
    return;
  }
  const struct pt_regs *registers = user_registers(task, &scratch->registers);
  if (!registers) return;
  copy_registers(walk, registers);
  if (*(uint16_t *)&registers->cs != CPROF_USER_CS) {
    scratch->stack.addresses[0] = walk->pc;
    walk->depth = 1;
    walk->end = SAMPLER_END_UNSUPPORTED_ABI;
    return;
  }
  int in_exec = is_in_execve(task);
  if (in_exec && !begin_in_exec(scratch, task)) return;
  walk_frames(slot);
  if (in_exec && walk->depth <= 1 && walk->end != SAMPLER_END_COMPLETE) end_in_exec(walk);
}

SAMPLER_INLINE void walk_kernel(struct scratch *scratch, void *context, uint64_t skip) {
  struct sampler_stack *stack = &scratch->stack;
  uint64_t user = at_most(scratch->walk.depth, SAMPLER_MAX_DEPTH);
  stack->user = (uint32_t)user;
  stack->kernel = 0;
  if (!settings.kernel_stacks || !(scratch->sample.flags & SAMPLER_IN_KERNEL)) return;
  long bytes = bpf_get_stack(context, &stack->addresses[user], SAMPLER_MAX_KERNEL * sizeof(uint64_t), skip);
  if (bytes > 0) stack->kernel = (uint32_t)bytes / sizeof(uint64_t);
}

struct hashing {
  uint32_t slot;
  uint32_t from, end;                   /* of the stack's addresses */
  uint32_t unused;
};

#ifdef SAMPLER_FOR_5_10

/* Global, to be verified once. */
__attribute__((noinline)) int hash_word(uint32_t slot, uint32_t index) {
  uint64_t at = at_most(index, SAMPLER_MAX_DEPTH + SAMPLER_MAX_KERNEL);
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  if (!scratch) return 0;
  scratch->walk.hash = walk_mix(scratch->walk.hash, scratch->stack.addresses[at]);
  return 0;
}

SAMPLER_INLINE void hash_words(struct hashing hashing) {
  for (uint32_t i = 0; i < 2 * SAMPLER_MAX_KERNEL; i++) {
    if (hashing.from + i >= hashing.end) break;
    hash_word(hashing.slot, hashing.from + i);
  }
}

#else

static long hash_word(uint32_t index, void *context) {
  const struct hashing *hashing = context;
  uint64_t at = at_most((uint64_t)hashing->from + index, SAMPLER_MAX_DEPTH + SAMPLER_MAX_KERNEL);
  uint32_t slot = hashing->slot;
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  if (!scratch || at >= hashing->end) return 1;
  scratch->walk.hash = walk_mix(scratch->walk.hash, scratch->stack.addresses[at]);
  return 0;
}

SAMPLER_INLINE void hash_words(struct hashing hashing) { bpf_loop(2 * SAMPLER_MAX_KERNEL, hash_word, &hashing, 0); }

#endif

/* Into the hash goes what the walk has not put there already. */
SAMPLER_INLINE uint64_t hash_rest(struct scratch *scratch, uint32_t slot) {
  struct hashing hashing = {.slot = slot, .from = scratch->stack.user, .end = scratch->stack.user + scratch->stack.kernel};
  if (scratch->walk.end == SAMPLER_END_UNKNOWN) hashing.from = 0;
  scratch->walk.hash = walk_mix(scratch->walk.hash, scratch->walk.end);
  if (hashing.from < hashing.end) hash_words(hashing);
  return scratch->walk.hash ? scratch->walk.hash : 1;
}

/* The stack's id; the stack itself is written unless it has been. 0: it could not be written. The place is taken only
 * after the record is out, so that no other CPU names a stack that is not there yet. */
SAMPLER_INLINE uint64_t define_stack(struct scratch *scratch, void *ring, uint32_t slot) {
  struct sampler_stack *stack = &scratch->stack;
  uint64_t id = hash_rest(scratch, slot);
  uint32_t place = (uint32_t)id % SAMPLER_SENT_SLOTS;
  uint64_t *known = bpf_map_lookup_elem(&sent, &place);
  if (!known) return 0;
  if (*(volatile uint64_t *)known == id) return id;
  stack->header = scratch->sample.header;
  stack->header.type = SAMPLER_STACK;
  stack->header.stack = id;
  stack->end = scratch->walk.end;
  stack->seen_ns = scratch->seen_ns;
  uint64_t words = at_most((uint64_t)stack->user + stack->kernel, SAMPLER_MAX_DEPTH + SAMPLER_MAX_KERNEL);
  uint64_t bytes = __builtin_offsetof(struct sampler_stack, addresses) + words * sizeof(uint64_t);
  if (bpf_ringbuf_output(ring, stack, bytes, wakeup_for(ring))) {
    count(SAMPLER_RING_FULL_STACKS);
    return 0;
  }
  *(volatile uint64_t *)known = id;
  return id;
}

/* What was used is forgiven as time goes by. They leave half of the ring to what is small. */
SAMPLER_INLINE int take_budget(struct scratch *scratch, void *ring) {
  uint64_t seconds = (scratch->sample.header.time_ns - scratch->budget_start) / 1000000000ull;
  if (seconds) {
    uint64_t forgiven = seconds * SAMPLER_SNAPSHOTS_PER_SECOND;
    scratch->budget_start += seconds * 1000000000ull;
    scratch->budget_used = scratch->budget_used > forgiven ? scratch->budget_used - (uint32_t)forgiven : 0;
  }
  if (scratch->budget_used < SAMPLER_SNAPSHOTS_AT_ONCE && !control.is_behind && !holds_more(ring, settings.ring_bytes / 2)) {
    scratch->budget_used++;
    return 1;
  }
  count(SAMPLER_SNAPSHOTS_OVER_BUDGET);
  return 0;
}

/* Nothing that a walk needs lies above: main's stack begins where exec put its arguments, and a thread's C library keeps
 * the thread's own data, to which fs points, at the top of its stack. */
SAMPLER_INLINE uint64_t bytes_below_top(struct task_struct *task, uint64_t sp) {
  uint64_t main_top = FIELD(task, mm, start_stack), thread_top = FIELD(task, thread.fsbase);
  uint64_t most = SAMPLER_SNAPSHOT_BYTES;
  if (main_top >= sp && main_top - sp < most) most = main_top - sp;
  if (FIELD(task, pid) != FIELD(task, tgid) && thread_top >= sp && thread_top - sp < most) most = thread_top - sp;
  return most;
}

/* As much of the stack as there is and fits, up to an address that cannot be read. */
SAMPLER_INLINE uint32_t copy_stack(struct sampler_snapshot *snapshot, uint64_t sp, uint64_t most) {
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

/* The walk could not do it: user space can. skip: kernel frames. 0: it was not needed, or not written. */
SAMPLER_INLINE int send_snapshot(struct scratch *scratch, void *context, void *ring, uint32_t slot, uint64_t skip) {
  if (!scratch->walk.wants_snapshot || !take_budget(scratch, ring)) return 0;
  uint32_t slot_of_cpu = slot % SLOTS;
  struct sampler_snapshot *snapshot = bpf_map_lookup_elem(&snapshots, &slot_of_cpu);
  if (!snapshot) return 0;
  snapshot->sample = scratch->sample;
  snapshot->sample.header.type = SAMPLER_SNAPSHOT;
  snapshot->reason = scratch->walk.end;
  snapshot->kernel = 0;
  if (settings.kernel_stacks) {
    long bytes = bpf_get_stack(context, snapshot->addresses, sizeof(snapshot->addresses), skip);
    if (bytes > 0) snapshot->kernel = (uint32_t)bytes / sizeof(uint64_t);
  }
  for (int i = 0; i < SAMPLER_REGISTERS; i++) snapshot->registers[i] = scratch->walk.registers[i];
  uint64_t sp = scratch->walk.registers[7];
  uint64_t bytes = at_most(copy_stack(snapshot, sp, bytes_below_top(current_task(), sp)), SAMPLER_SNAPSHOT_BYTES);
  snapshot->stack_bytes = (uint32_t)bytes;
  if (!bpf_ringbuf_output(ring, snapshot, __builtin_offsetof(struct sampler_snapshot, stack) + bytes, wakeup_for(ring))) return 1;
  count(SAMPLER_RING_FULL_SNAPSHOTS);
  return 0;
}

#endif
