/* The kernel's types as far as the BPF programs look into them, by the kernel's own names. CO-RE: libbpf finds where the
 * running kernel keeps each field, so order and gaps here mean nothing. Included by *.bpf.c only.
 */
#ifndef CPROF_KERNEL_TYPES_H
#define CPROF_KERNEL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#define CPROF_PF_KTHREAD 0x00200000
#define CPROF_TASK_UNINTERRUPTIBLE 0x0002
#define CPROF_TASK_NOLOAD 0x0400        /* with the bit above: idle */
#define CPROF_VM_EXEC 0x00000004
#define CPROF_THREAD_SIZE 16384         /* of a task's kernel stack */
#define CPROF_USER_CS 0x33            /* 64-bit user code */

enum maple_type { maple_dense, maple_leaf_64, maple_range_64, maple_arange_64 };

/* Order and size are those of ptrace and of the perf program's context: part of the interface, not relocated. */
struct pt_regs {
  uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
struct bpf_perf_event_data {
  struct pt_regs regs;
  uint64_t sample_period;
  uint64_t addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
  unsigned int s_dev;
};
struct inode {
  struct super_block *i_sb;
  unsigned long i_ino;
};
struct file {
  struct inode *f_inode;
};
struct vm_area_struct {
  unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
  struct file *vm_file;
};
struct maple_tree {                     /* mappings by address, since 6.1 */
  void *ma_root;
};
typedef struct {
  void *vdso;
} mm_context_t;
struct mm_struct {
  struct maple_tree mm_mt;
  unsigned long start_stack, end_code;
  mm_context_t context;
};
struct thread_struct {
  unsigned long fsbase;
};
struct sched_entity {
  uint64_t sum_exec_runtime, nr_migrations;
};
typedef struct {
  int counter;
} atomic_t;
struct signal_struct {
  atomic_t live;                        /* threads that have not begun to exit */
};
struct task_struct {
  void *stack;
  unsigned int flags;
  unsigned int __state;
  int pid, tgid;
  char comm[16];
  struct sched_entity se;
  uint64_t utime, stime;                /* by the tick */
  unsigned long nvcsw, nivcsw;
  struct signal_struct *signal;
  struct mm_struct *mm;
  struct task_struct *group_leader;
  uint64_t start_boottime;
  uint64_t self_exec_id;
  unsigned in_execve : 1;
  unsigned long sas_ss_sp;              /* of the stack for signals, if there is one */
  unsigned long sas_ss_size;
  struct thread_struct thread;
};

struct bpf_iter__task {
  struct task_struct *task;
};

struct perf_event_attr {
  uint32_t wakeup_watermark;
};
struct perf_event {
  struct perf_event_attr attr;
};
/* What a perf program's context really is. */
struct bpf_perf_event_data_kern {
  struct perf_event *event;
};

#pragma clang attribute pop

#endif
