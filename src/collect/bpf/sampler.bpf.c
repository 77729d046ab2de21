// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The sampler inside the kernel. on_sample runs at each overflow of a perf event, on_switch at each context switch: both
 * drop what is not wanted first, walk the user stack by the tables in the maps, take the kernel's stack, and write a
 * record to the ring of their CPU. A stack is written once per process image (define_stack) and named by its id then,
 * until user space wants all of them again.
 * All memory is preallocated and no helper takes a lock it could hold already: on_sample may run in an NMI.
 * What cannot be done is counted, never passed over.
 */
#include "collect/bpf/sampler_state.bpf.h"
#include "collect/bpf/sampler_stack.bpf.h"

char sampler_license[] SEC("license") = "Dual BSD/GPL";

/* ---- which tasks ---- */

SAMPLER_INLINE int is_wanted(uint32_t tid) {
  if (settings.filter == SAMPLER_ALL) return 1;
  if (settings.filter == SAMPLER_CGROUP) return bpf_current_task_under_cgroup(&cgroup, 0) == 1;
  const struct sampler_task *task = bpf_map_lookup_elem(&tasks, &tid);
  return task && task->on;
}

/* A new thread waits for its first CPU. */
SAMPLER_INLINE void begin_off_cpu(uint32_t tid) {
  struct sampler_wait fresh = {.out_ns = bpf_ktime_get_ns()};
  if (bpf_map_update_elem(&waits, &tid, &fresh, BPF_ANY)) count(SAMPLER_WAITS_FULL);
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
  if (settings.off_cpu && is_wanted(parent_tid)) begin_off_cpu(child_tid);
  if (child_pid != parent_pid) follow_fork(parent_pid, child_pid);
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
  follow_exec(pid);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid;
  bpf_map_delete_elem(&waits, &tid);
  if (settings.filter == SAMPLER_TASKS) bpf_map_delete_elem(&tasks, &tid);
  return 0;
}

/* ---- on-CPU ---- */

/* A thread runs on one CPU at a time, so nobody else adds to its counts. */
SAMPLER_INLINE void add_to(struct sampler_count *known, void *map, const struct sampler_count_key *key, uint64_t weight) {
  struct sampler_count first = {.samples = 1, .weight = weight};
  if (known) {
    known->samples++;
    known->weight += weight;
  } else if (bpf_map_update_elem(map, key, &first, BPF_ANY)) {
    count(SAMPLER_COUNTS_FULL);
  }
}

SAMPLER_INLINE void count_sample(const struct sampler_sample *sample) {
  struct sampler_count_key key = {.stack = sample->header.stack, .pid = sample->header.pid, .tid = sample->header.tid,
                                  .metric = sample->metric, .in_kernel = sample->flags & SAMPLER_IN_KERNEL};
  if (control.counts) add_to(bpf_map_lookup_elem(&counts_1, &key), &counts_1, &key, sample->period);
  else add_to(bpf_map_lookup_elem(&counts_0, &key), &counts_0, &key, sample->period);
}

SAMPLER_INLINE void take_sample(struct bpf_perf_event_data *context, struct scratch *scratch, void *ring, uint32_t slot) {
  struct task_struct *task = current_task();
  struct sampler_sample *sample = &scratch->sample;
  begin_walk(scratch, task, sample->header.pid, slot);
  walk_user(scratch, task, context, slot);
  if (send_snapshot(scratch, context, ring, slot, 0)) return;
  walk_kernel(scratch, context, 0);
  sample->header.stack = define_stack(scratch, ring, slot);
  if (settings.count_only) count_sample(sample);
  else if (bpf_ringbuf_output(ring, sample, sizeof(*sample), wakeup_for(ring))) count(SAMPLER_RING_FULL_SAMPLES);
}

/* Which of several events this is. An attach cookie could tell, but events that a new thread inherits have none, and there
 * are none before 5.15; attributes are inherited, and without a ring the watermark means nothing. */
SAMPLER_INLINE uint32_t metric_of(struct bpf_perf_event_data *context) {
  return BPF_CORE_READ((struct bpf_perf_event_data_kern *)context, event, attr.wakeup_watermark);
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *context) {
  uint64_t ids = bpf_get_current_pid_tgid();
  uint32_t tid = (uint32_t)ids, slot = place_of(SLOT_SAMPLE);
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
  sample->metric = settings.has_metrics ? metric_of(context) : 0;
  sample->flags = context->regs.cs & 3 ? 0 : SAMPLER_IN_KERNEL;
  count(SAMPLER_SAMPLES);
  take_sample(context, scratch, ring, slot);
  return settings.let_through;
}

/* ---- off-CPU ---- */

SAMPLER_INLINE int is_wanted_cpu(void) {
  if (!settings.some_cpus) return 1;
  uint32_t cpu = bpf_get_smp_processor_id();
  return cpu < SAMPLER_MAX_CPUS && settings.cpus[at_most(cpu / 64, SAMPLER_MAX_CPUS / 64 - 1)] >> (cpu % 64) & 1;
}

/* The preempt count, which would say it, cannot be reached where kallsyms has no data symbols. But an interrupt of kernel
 * code runs on a stack of its own, and so does this program then (through a map its address becomes a number that may be
 * compared); and one of user code leaves no system call's number behind. */
SAMPLER_INLINE int is_in_interrupt(struct task_struct *task) {
  uint32_t first = 0;
  uint64_t *place = bpf_map_lookup_elem(&own_stack, &first);
  if (!place) return 1;
  *(volatile uint64_t *)place = (uint64_t)&first;
  if (*(volatile uint64_t *)place - (uint64_t)FIELD(task, stack) >= CPROF_THREAD_SIZE) return 1;
  if (!FIELD(task, mm) || FIELD(task, flags) & CPROF_PF_KTHREAD) return 0;
  struct pt_regs room;
  const struct pt_regs *registers = user_registers(task, &room);
  return registers && (int64_t)registers->orig_ax < 0;
}

SAMPLER_INLINE void tell_switch_in(struct sampler_wait *wait, uint32_t pid, uint32_t tid, uint64_t time_ns, void *ring) {
  struct sampler_switch in = {.woken_ns = wait->woken_ns, .waker_pid = wait->waker_pid, .waker_tid = wait->waker_tid};
  in.header.type = SAMPLER_SWITCH_IN;
  in.header.cpu = bpf_get_smp_processor_id();
  in.header.time_ns = time_ns;
  in.header.pid = pid;
  in.header.tid = tid;
  wait->out_ns = 0;
  if (bpf_ringbuf_output(ring, &in, sizeof(in), wakeup_for(ring))) count(SAMPLER_RING_FULL_SWITCHES);
}

/* 0: it could not be written, or was sent as it is. */
SAMPLER_INLINE uint64_t switch_stack(struct scratch *scratch, void *context, void *ring, uint32_t slot) {
  const uint64_t ours = 2;  /* kernel frames: ourselves and who called us */
  struct sampler_sample *sample = &scratch->sample;
  sample->metric = SAMPLER_SWITCH_STACKS;
  sample->period = 1;
  sample->flags = SAMPLER_IN_KERNEL;
  sample->ip = sample->header.stack = 0;
  if (send_snapshot(scratch, context, ring, slot, ours)) return 0;
  walk_kernel(scratch, context, ours);
  return define_stack(scratch, ring, slot);
}

SAMPLER_INLINE void leave_cpu(void *context, struct task_struct *task, uint32_t flags) {
  uint64_t ids = bpf_get_current_pid_tgid();
  uint32_t tid = (uint32_t)ids, slot = place_of(SLOT_SWITCH);
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
  begin_walk(scratch, task, header->pid, slot);
  walk_user(scratch, task, context, slot);
  struct sampler_switch out = {.header = *header, .flags = flags};
  out.header.type = SAMPLER_SWITCH_OUT;
  out.header.stack = switch_stack(scratch, context, ring, slot);
  if (bpf_ringbuf_output(ring, &out, sizeof(out), wakeup_for(ring))) {
    count(SAMPLER_RING_FULL_SWITCHES);
    return;
  }
  wait->woken_ns = 0;
  wait->waker_pid = wait->waker_tid = 0;
  wait->out_ns = header->time_ns;
}

SAMPLER_INLINE void enter_cpu(struct task_struct *task) {
  uint32_t tid = (uint32_t)task->pid;
  struct sampler_wait *wait = bpf_map_lookup_elem(&waits, &tid);
  if (!wait || !wait->out_ns) return;
  void *ring = ring_of_this_cpu();
  if (ring) tell_switch_in(wait, (uint32_t)task->tgid, tid, bpf_ktime_get_ns(), ring);
}

/* Idle kernel threads wait as nobody does. */
SAMPLER_INLINE uint32_t state_flags(struct task_struct *task) {
  const uint32_t state = state_of(task);
  if (!state) return SAMPLER_PREEMPTED;
  return (state & (CPROF_TASK_UNINTERRUPTIBLE | CPROF_TASK_NOLOAD)) == CPROF_TASK_UNINTERRUPTIBLE ? SAMPLER_UNINTERRUPTIBLE : 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next) {
  if (!control.on) return 0;
  leave_cpu(ctx, prev, preempt ? SAMPLER_PREEMPTED : state_flags(prev));
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
  uint64_t ids = is_in_interrupt(current_task()) ? 0 : bpf_get_current_pid_tgid();
  wait->waker_pid = ids >> 32;
  wait->waker_tid = (uint32_t)ids;
  wait->woken_ns = bpf_ktime_get_ns();
  return 0;
}
