// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* What each thread does with its time, summed up where it happens: one value a thread in the map `threads`, which user
 * space reads once an interval. At a switch-out to wait the kernel's stack is looked up by its hash; user space has told
 * the class of those it has seen, waits on others are kept by stack until it has (`pending`).
 * CPU time, its user part, switches and migrations are the kernel's own accounts, copied at each switch.
 * One object for Linux 5.10 and later.
 */
#define SAMPLER_FOR_5_10
#include "collect/bpf/cpustat_abi.h"
#include "collect/bpf/kernel_access.bpf.h"
#include "collect/bpf/maps.bpf.h"

char cpustat_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct cpustat_settings settings SEC(".rodata.settings") = {};

HASH_OF(threads, 32768, uint32_t, struct cpustat_thread);  /* user space chooses how many */
HASH_OF(targets, CPUSTAT_MAX_TARGETS, uint32_t, uint32_t);
HASH_OF(classes, CPUSTAT_MAX_STACKS, uint64_t, uint32_t);
HASH_OF(new_stacks, CPUSTAT_NEW_STACKS, uint64_t, struct cpustat_stack);
HASH_OF(pending, CPUSTAT_MAX_STACKS, struct cpustat_pending_key, uint64_t);

enum room { ROOM_SWITCH, ROOM_ITERATOR, ROOMS };  /* the iterator may be interrupted by a switch */
PERCPU_OF(stack_rooms, ROOMS, struct cpustat_stack);
PERCPU_OF(thread_rooms, ROOMS, struct cpustat_thread);
PERCPU_OF(counters, CPUSTAT_COUNTERS, uint64_t);

struct {
  __uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint32_t);
} cgroup SEC(".maps");

SAMPLER_INLINE void count(uint32_t which) {
  uint64_t *counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) ++*counter;
}

/* ---- which threads ---- */

SAMPLER_INLINE int is_target(uint32_t id) { return bpf_map_lookup_elem(&targets, &id) != 0; }

SAMPLER_INLINE void add_target(uint32_t id) {
  uint32_t on = 1;
  if (bpf_map_update_elem(&targets, &id, &on, BPF_ANY)) count(CPUSTAT_TARGETS_FULL);
}

SAMPLER_INLINE int is_wanted(struct task_struct *task, int is_current) {
  if (settings.filter == CPUSTAT_ALL) return 1;
  if (settings.filter == CPUSTAT_PROCESSES) return is_target((uint32_t)task->tgid);
  if (settings.filter == CPUSTAT_THREADS) return is_target((uint32_t)task->pid);
  return is_current && bpf_current_task_under_cgroup(&cgroup, 0) == 1;
}

SAMPLER_INLINE void read_account(struct cpustat_account *account, struct task_struct *task) {
  account->cpu_ns = task->se.sum_exec_runtime;
  account->user_ns = task->utime;
  account->system_ns = task->stime;
  account->voluntary = task->nvcsw;
  account->involuntary = task->nivcsw;
  account->migrations = task->se.nr_migrations;
}

SAMPLER_INLINE void read_comm(struct cpustat_thread *thread, struct task_struct *task) {
  bpf_probe_read_kernel_str(thread->comm, sizeof(thread->comm), &task->comm);
}

/* Replaces what a thread of the same number left. */
SAMPLER_INLINE struct cpustat_thread *begin_thread(struct task_struct *task, uint32_t state, uint64_t now, uint64_t stack,
                                                   uint32_t which, uint64_t flags) {
  uint32_t tid = (uint32_t)task->pid;
  struct cpustat_thread *fresh = bpf_map_lookup_elem(&thread_rooms, &which);
  if (!fresh) return 0;
  __builtin_memset(fresh, 0, sizeof(*fresh));
  fresh->pid = (uint32_t)task->tgid;
  fresh->tid = tid;
  fresh->start_ns = task->start_boottime;
  fresh->state = state;
  fresh->since_ns = now;
  fresh->stack = stack;
  fresh->cpu = bpf_get_smp_processor_id();
  fresh->is_kernel = (task->flags & CPROF_PF_KTHREAD) != 0;
  read_comm(fresh, task);
  read_account(&fresh->first, task);
  fresh->now = fresh->first;
  if (bpf_map_update_elem(&threads, &tid, fresh, flags) && flags == BPF_ANY) count(CPUSTAT_THREADS_FULL);
  return bpf_map_lookup_elem(&threads, &tid);
}

/* ---- waits ---- */

/* FNV-1a over words. */
SAMPLER_INLINE uint64_t hash_stack(const struct cpustat_stack *stack) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (uint32_t i = 0; i < CPUSTAT_MAX_FRAMES; i++) {
    if (i >= stack->count) break;
    hash = (hash ^ stack->addresses[i]) * 0x100000001b3ull;
    hash ^= hash >> 29;
  }
  return hash ? hash : 1;
}

/* User space is told of stacks that have no class. */
SAMPLER_INLINE uint64_t stack_id(struct cpustat_stack *stack, long bytes) {
  if (bytes <= 0) return 0;
  stack->count = (uint32_t)bytes / sizeof(uint64_t);
  uint64_t id = hash_stack(stack);
  if (!bpf_map_lookup_elem(&classes, &id)) bpf_map_update_elem(&new_stacks, &id, stack, BPF_NOEXIST);
  return id;
}

SAMPLER_INLINE uint64_t current_stack_id(void *context) {
  uint32_t which = ROOM_SWITCH;
  struct cpustat_stack *stack = bpf_map_lookup_elem(&stack_rooms, &which);
  return stack ? stack_id(stack, bpf_get_stack(context, stack->addresses, sizeof(stack->addresses), 0)) : 0;
}

SAMPLER_INLINE uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

/* The system call that is waiting, its first arguments and where it came from; 0: not known. */
SAMPLER_INLINE uint64_t call_print(struct task_struct *task) {
  struct pt_regs room;
  const struct pt_regs *registers = user_registers(task, &room);
  if (!registers) return 0;
  return mix(mix(mix(mix(registers->orig_ax + 1, registers->di), registers->si), registers->ip), registers->sp) | 1;
}

/* Walking the stack costs several times the rest. The same call from the same place waits as it did: that is believed
 * CPUSTAT_BELIEF times, then looked at again. */
SAMPLER_INLINE uint64_t wait_stack(void *context, struct cpustat_thread *thread, struct task_struct *task) {
  uint64_t print = thread->is_kernel ? 0 : call_print(task);
  if (print && print == thread->call_print && thread->stack && thread->believed < CPUSTAT_BELIEF) {
    thread->believed++;
    return thread->stack;
  }
  thread->call_print = print;
  thread->believed = 0;
  return current_stack_id(context);
}

SAMPLER_INLINE void add_wait(struct cpustat_thread *thread, uint64_t duration) {
  const uint32_t *known = bpf_map_lookup_elem(&classes, &thread->stack);
  if (known) {
    uint32_t class = *known;
    if (class < CPUSTAT_CLASSES) thread->waits_ns[class] += duration;
    return;
  }
  struct cpustat_pending_key key = {.stack = thread->stack, .tid = thread->tid};
  uint64_t *sum = thread->stack ? bpf_map_lookup_elem(&pending, &key) : 0;
  if (sum) {
    *sum += duration;
  } else if (!thread->stack || bpf_map_update_elem(&pending, &key, &duration, BPF_ANY)) {
    count(CPUSTAT_WAITS_WITHOUT_STACK);
    thread->waits_ns[CPUSTAT_UNKNOWN_CLASS] += duration;
  }
}

SAMPLER_INLINE uint64_t since(uint64_t before, uint64_t after) { return after > before ? after - before : 0; }

/* It is on a CPU from now on. */
SAMPLER_INLINE void end_off_cpu(struct cpustat_thread *thread, uint64_t now) {
  uint64_t runnable_from = thread->since_ns;
  if (thread->state == CPUSTAT_WAITING) {
    runnable_from = thread->woken_ns && thread->woken_ns < now ? thread->woken_ns : now;
    add_wait(thread, since(thread->since_ns, runnable_from));
  }
  thread->runnable_ns += since(runnable_from, now);
  thread->state = CPUSTAT_RUNNING;
  thread->since_ns = now;
  thread->woken_ns = 0;
}

/* ---- switches ---- */

/* The waker may be quicker than the one that goes to sleep. */
SAMPLER_INLINE int was_just_woken(const struct cpustat_thread *thread, uint64_t now) {
  const uint64_t longest = 100000;
  return thread->woken_ns && thread->woken_ns >= thread->since_ns && now - thread->woken_ns < longest;
}

SAMPLER_INLINE void leave_cpu(void *context, struct task_struct *task, bool preempted, uint64_t now) {
  uint32_t tid = (uint32_t)task->pid;
  if (!tid) return;
  struct cpustat_thread *thread = bpf_map_lookup_elem(&threads, &tid);
  if (!thread) {
    if (!is_wanted(task, 1)) return;
    thread = begin_thread(task, CPUSTAT_RUNNING, now, 0, ROOM_SWITCH, BPF_ANY);
    if (!thread) return;
  }
  if (thread->state != CPUSTAT_RUNNING) {
    /* Some kernels switch to a task without the tracepoint now and then (seen on a 6.18 for virtual machines). */
    count(CPUSTAT_UNTRACED_SWITCHES);
    end_off_cpu(thread, now - since(thread->now.cpu_ns, task->se.sum_exec_runtime));
  }
  read_account(&thread->now, task);
  read_comm(thread, task);
  if (thread->ended_ns) return;
  int is_waiting = !preempted && !is_runnable(task) && !was_just_woken(thread, now);
  thread->state = is_waiting ? CPUSTAT_WAITING : CPUSTAT_RUNNABLE;
  thread->since_ns = now;
  thread->woken_ns = 0;
  if (is_waiting) thread->stack = wait_stack(context, thread, task);
}

SAMPLER_INLINE void enter_cpu(struct task_struct *task, uint64_t now) {
  uint32_t tid = (uint32_t)task->pid;
  if (!tid) return;
  struct cpustat_thread *thread = bpf_map_lookup_elem(&threads, &tid);
  if (!thread) {
    if (is_wanted(task, 0)) begin_thread(task, CPUSTAT_RUNNING, now, 0, ROOM_SWITCH, BPF_ANY);
    return;
  }
  if (thread->state != CPUSTAT_RUNNING) end_off_cpu(thread, now);
  thread->cpu = bpf_get_smp_processor_id();
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
  uint64_t now = bpf_ktime_get_ns();
  leave_cpu(ctx, prev, preempt, now);
  enter_cpu(next, now);
  return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid;
  struct cpustat_thread *thread = bpf_map_lookup_elem(&threads, &tid);
  if (!thread) return 0;
  thread->wakeups++;
  if (thread->state != CPUSTAT_WAITING || !thread->woken_ns) thread->woken_ns = bpf_ktime_get_ns();
  return 0;
}

/* ---- lives ---- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  int is_thread = child->tgid == parent->tgid;
  if (!is_wanted(parent, 1)) return 0;
  if (!settings.inherit && (!is_thread || settings.filter == CPUSTAT_THREADS)) return 0;
  if (settings.filter == CPUSTAT_PROCESSES && !is_thread) add_target((uint32_t)child->tgid);
  if (settings.filter == CPUSTAT_THREADS) add_target((uint32_t)child->pid);
  begin_thread(child, CPUSTAT_RUNNABLE, bpf_ktime_get_ns(), 0, ROOM_SWITCH, BPF_ANY);
  return 0;
}

/* A thread that executes a program takes the number of its process. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid) {
  uint32_t tid = (uint32_t)task->pid, old = (uint32_t)old_tid, which = ROOM_SWITCH;
  if (settings.filter == CPUSTAT_THREADS && is_target(old)) add_target(tid);
  const struct cpustat_thread *thread = bpf_map_lookup_elem(&threads, &old);
  struct cpustat_thread *renamed = bpf_map_lookup_elem(&thread_rooms, &which);
  if (old == tid || !thread || !renamed) return 0;
  __builtin_memcpy(renamed, thread, sizeof(*renamed));
  renamed->tid = tid;
  bpf_map_delete_elem(&threads, &old);
  if (bpf_map_update_elem(&threads, &tid, renamed, BPF_ANY)) count(CPUSTAT_THREADS_FULL);
  return 0;
}

/* It leaves its CPU once more; user space reads it after that and lets go of it. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid, pid = (uint32_t)task->tgid;
  struct cpustat_thread *thread = bpf_map_lookup_elem(&threads, &tid);
  if (thread) thread->ended_ns = bpf_ktime_get_ns();
  if (settings.filter == CPUSTAT_THREADS) bpf_map_delete_elem(&targets, &tid);
  if (settings.filter == CPUSTAT_PROCESSES && BPF_CORE_READ(task, signal, live.counter) == 0) bpf_map_delete_elem(&targets, &pid);
  return 0;
}

/* ---- asked for by user space ---- */

/* What there is when the run begins. */
SEC("iter/task")
int on_task(struct bpf_iter__task *context) {
  struct task_struct *task = context->task;
  uint32_t which = ROOM_ITERATOR, state = CPUSTAT_RUNNABLE;
  if (!task || !task->pid || !is_wanted(task, 0)) return 0;
  uint64_t stack = 0;
  if (!is_runnable(task)) {
    struct cpustat_stack *room = bpf_map_lookup_elem(&stack_rooms, &which);
    if (room) stack = stack_id(room, bpf_get_task_stack(task, room->addresses, sizeof(room->addresses), 0));
    state = CPUSTAT_WAITING;
  }
  begin_thread(task, state, bpf_ktime_get_ns(), stack, ROOM_ITERATOR, BPF_NOEXIST);
  return 0;
}

/* Run on the CPU of a thread that has not left it: its account up to now. */
SEC("raw_tp/cpustat")
int on_look(void *context) {
  struct task_struct *task = (struct task_struct *)bpf_get_current_task();
  uint32_t tid = (uint32_t)BPF_CORE_READ(task, pid);
  struct cpustat_thread *thread = bpf_map_lookup_elem(&threads, &tid);
  if (!thread || thread->state != CPUSTAT_RUNNING) return 0;
  thread->now.cpu_ns = BPF_CORE_READ(task, se.sum_exec_runtime);
  thread->now.user_ns = BPF_CORE_READ(task, utime);
  thread->now.system_ns = BPF_CORE_READ(task, stime);
  return 0;
}
