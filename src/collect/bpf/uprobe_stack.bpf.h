/* The stack that a call was made from, taken where the call ends: the function's own frame, its caller by the return
 * address, and from there on as every other stack (sampler_stack.bpf.h). Its frames have not run meanwhile, so it is the stack of
 * the call's beginning, too. Only calls that are told have it. Part of uprobe.bpf.c.
 */
#ifndef CPROF_UPROBE_STACK_BPF_H
#define CPROF_UPROBE_STACK_BPF_H

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid) {
  follow_exec((uint32_t)task->tgid);
  return 0;
}

/* Two programs may take turns on a CPU: each has memory of its own. Null: there is none left. */
SAMPLER_INLINE struct scratch *take_scratch(uint32_t *slot) {
  for (uint32_t i = 0; i < SLOTS; i++) {
    *slot = bpf_get_smp_processor_id() * SLOTS + i;
    struct scratch *scratch = bpf_map_lookup_elem(&scratches, slot);
    if (scratch && __sync_val_compare_and_swap(&scratch->is_taken, 0, 1) == 0) return scratch;
  }
  count_loss(UPROBE_STACKS_BUSY);
  return 0;
}

/* Needs begin_walk() and the registers. A global function, to be verified once. */
__attribute__((noinline)) int walk_call(uint32_t slot) {
  struct scratch *scratch = bpf_map_lookup_elem(&scratches, &slot);
  void *ring = ring_of_this_cpu();
  if (!scratch || !ring) return 0;
  struct sampler_sample *sample = &scratch->sample;
  count(SAMPLER_SAMPLES);
  if (!walk_leave(&scratch->walk, scratch->stack.addresses)) walk_frames(slot);
  if (send_snapshot(scratch, 0, ring, slot, 0)) return 0;
  walk_kernel(scratch, 0, 0);
  sample->header.stack = define_stack(scratch, ring, slot);
  if (bpf_ringbuf_output(ring, sample, sizeof(*sample), wakeup_for(ring))) count(SAMPLER_RING_FULL_SAMPLES);
  return 0;
}

/* A sample at the call's end: by its thread and time user space finds the call. */
SAMPLER_INLINE void note_sample(struct sampler_sample *sample, uint64_t ip, uint64_t end_ns) {
  uint64_t ids = bpf_get_current_pid_tgid();
  sample->header.type = SAMPLER_SAMPLE;
  sample->header.cpu = bpf_get_smp_processor_id();
  sample->header.time_ns = end_ns;
  sample->header.pid = ids >> 32;
  sample->header.tid = (uint32_t)ids;
  sample->header.stack = 0;
  sample->ip = ip;
  sample->period = 1;
  sample->metric = sample->flags = 0;
}

/* What it takes is none of the calls' around it. */
SAMPLER_INLINE void tell_stack(const struct pt_regs *ctx, struct uprobe_thread *thread, uint64_t end_ns) {
  uint64_t begin_ns = bpf_ktime_get_ns();
  uint32_t slot = 0;
  struct scratch *scratch = take_scratch(&slot);
  if (!scratch) return;
  note_sample(&scratch->sample, ctx->ip, end_ns);
  begin_walk(scratch, current_task(), scratch->sample.header.pid, slot);
  copy_registers(&scratch->walk, ctx);
  walk_call(slot);
  *(volatile uint32_t *)&scratch->is_taken = 0;
  if (thread->depth > 0) frame_at(thread, thread->depth - 1)->nested_ns += bpf_ktime_get_ns() - begin_ns;
}

#endif
