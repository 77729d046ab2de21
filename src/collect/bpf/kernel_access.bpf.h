/* How the programs reach what kernels offer differently. Part of sampler.bpf.c, which is compiled twice: for Linux 5.17
 * and later, and with SAMPLER_FOR_5_10 for those before, which lack bpf_loop, bpf_task_pt_regs and pointers
 * to tasks that can be followed outside of tracepoints.
 */
#ifndef CPROF_KERNEL_ACCESS_BPF_H
#define CPROF_KERNEL_ACCESS_BPF_H

#include "collect/bpf/kernel_types.h"

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define SAMPLER_INLINE static inline __attribute__((always_inline))

/* FIELD(task, mm) is task->mm; FIELD(task, mm, start_stack) is task->mm->start_stack. */
#ifdef SAMPLER_FOR_5_10

#define FIELD(...) BPF_CORE_READ(__VA_ARGS__)

SAMPLER_INLINE struct task_struct *current_task(void) { return (struct task_struct *)bpf_get_current_task(); }

SAMPLER_INLINE int is_in_execve(struct task_struct *task) {
  return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/* They lie at the top of the kernel's stack. */
SAMPLER_INLINE const struct pt_regs *user_registers(struct task_struct *task, struct pt_regs *room) {
  const char *top = (const char *)BPF_CORE_READ(task, stack) + CPROF_THREAD_SIZE;
  return bpf_probe_read_kernel(room, sizeof(*room), top - sizeof(*room)) ? 0 : room;
}

#else

#define FIELD_OF_2(pointer, field) (pointer)->field
#define FIELD_OF_3(pointer, field, inner) (pointer)->field->inner
#define FIELD_CHOICE(a, b, c, chosen, ...) chosen
#define FIELD(...) FIELD_CHOICE(__VA_ARGS__, FIELD_OF_3, FIELD_OF_2, )(__VA_ARGS__)

SAMPLER_INLINE struct task_struct *current_task(void) { return bpf_get_current_task_btf(); }

SAMPLER_INLINE int is_in_execve(struct task_struct *task) {
  return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD(task, in_execve);
}

SAMPLER_INLINE const struct pt_regs *user_registers(struct task_struct *task, struct pt_regs *room) {
  (void)room;
  return (const struct pt_regs *)bpf_task_pt_regs(task);
}

#endif

/* In tracepoints only, where tasks can be followed on every kernel. Called `state` before 5.14. */
struct task_struct___before_5_14 {
  long state;
} __attribute__((preserve_access_index));

SAMPLER_INLINE uint32_t state_of(struct task_struct *task) {
  if (bpf_core_field_exists(task->__state)) return task->__state;
  return (uint32_t)BPF_CORE_READ((struct task_struct___before_5_14 *)task, state);
}
SAMPLER_INLINE int is_runnable(struct task_struct *task) { return state_of(task) == 0; }

#endif
