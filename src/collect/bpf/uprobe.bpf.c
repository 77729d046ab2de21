// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Calls of user functions: an entry probe counts and remembers where the stack pointer was and when; a probe at each
 * instruction that leaves the function closes the call whose entry had the same stack pointer. So recursion, exceptions,
 * longjmp and missed exits cannot give one call the time of another: calls whose frame is gone are closed as unwound by the
 * next probe of their thread. Sums and histograms are kept here; calls are told one by one only where they are asked for.
 * Compiled twice: with UPROBE_STACKS, which needs Linux 5.17, calls that are told have the stacks they were called from.
 * For Linux 5.15 and later. Programs may be preempted and go on by turns on one CPU, so all that is shared is added to
 * atomically.
 */
#include "collect/bpf/uprobe_abi.h"
#include "collect/bpf/kernel_access.bpf.h"
#include "collect/bpf/maps.bpf.h"

char uprobe_license[] SEC("license") = "Dual BSD/GPL";

const volatile struct uprobe_settings settings SEC(".rodata.settings") = {};

struct second {
  uint64_t start_ns, calls;
};

ARRAY_OF(sites, 1, struct uprobe_site);            /* user space chooses how many, as for the next two */
ARRAY_OF(rows, 1, struct uprobe_row);              /* function * shards + shard */
ARRAY_OF(histograms, 1, struct uprobe_histogram);
ARRAY_OF(losses, UPROBE_COUNTERS, uint64_t);
ARRAY_OF(this_second, 1, struct second);
HASH_OF(targets, UPROBE_MAX_TARGETS, uint32_t, uint32_t);
HASH_OF(callers, UPROBE_MAX_CALLERS, struct uprobe_caller_key, struct uprobe_caller);

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct uprobe_thread);
} threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);  /* user space chooses */
} calls SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
  __uint(max_entries, 1);
  __type(key, uint32_t);
  __type(value, uint32_t);
} cgroup SEC(".maps");

SAMPLER_INLINE void add(uint64_t *to, uint64_t number) { __sync_fetch_and_add(to, number); }

SAMPLER_INLINE void count_loss(uint32_t which) {
  uint64_t *counter = bpf_map_lookup_elem(&losses, &which);
  if (counter) add(counter, 1);
}

/* Whoever comes between has raised it as well. */
SAMPLER_INLINE void raise_to(uint64_t *to, uint64_t value) {
  for (int tries = 0; tries < 16; tries++) {
    uint64_t now = *(volatile uint64_t *)to;
    if (now >= value || __sync_val_compare_and_swap(to, now, value) == now) return;
  }
}

#ifdef UPROBE_STACKS
#include "collect/bpf/sampler_stack.bpf.h"
#endif

/* ---- which threads ---- */

SAMPLER_INLINE int is_target(uint32_t id) { return bpf_map_lookup_elem(&targets, &id) != 0; }

SAMPLER_INLINE int is_wanted(void) {
  uint64_t ids = bpf_get_current_pid_tgid();
  if (settings.filter == UPROBE_ONE_PROCESS) return (uint32_t)(ids >> 32) == settings.process;
  if (settings.filter == UPROBE_PROCESSES) return is_target((uint32_t)(ids >> 32));
  if (settings.filter == UPROBE_THREADS) return is_target((uint32_t)ids);
  if (settings.filter == UPROBE_CGROUP) return bpf_current_task_under_cgroup(&cgroup, 0) == 1;
  return 1;
}

SAMPLER_INLINE void follow_target(struct task_struct *parent, struct task_struct *child) {
  uint32_t from = (uint32_t)(settings.filter == UPROBE_THREADS ? parent->pid : parent->tgid);
  uint32_t to = (uint32_t)(settings.filter == UPROBE_THREADS ? child->pid : child->tgid), on = 1;
  if (from != to && is_target(from) && bpf_map_update_elem(&targets, &to, &on, BPF_ANY)) count_loss(UPROBE_TARGETS_FULL);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  if (settings.inherit) follow_target(parent, child);
#ifdef UPROBE_STACKS
  if (parent->tgid != child->tgid) follow_fork((uint32_t)parent->tgid, (uint32_t)child->tgid);
#endif
  return 0;
}

/* ---- sums ---- */

SAMPLER_INLINE uint32_t shard_of(uint32_t function) {
  return function * settings.shards + (bpf_get_smp_processor_id() & (settings.shards - 1));
}

SAMPLER_INLINE void add_latency(struct uprobe_row *row, uint32_t at, uint64_t latency_ns, uint64_t raw_ns) {
  add(&row->finished, 1);
  add(&row->total_ns, latency_ns);
  add(&row->raw_ns, raw_ns);
  raise_to(&row->inverted_least_ns, ~latency_ns);
  raise_to(&row->most_ns, latency_ns);
  struct uprobe_histogram *histogram = bpf_map_lookup_elem(&histograms, &at);
  uint32_t bucket = uprobe_bucket(latency_ns);
  if (histogram && bucket < UPROBE_BUCKETS) add(&histogram->buckets[bucket], 1);
}

/* ---- calls told one by one ---- */

/* So that somebody waits for it only when there is much: a wake-up costs more than all the rest. */
SAMPLER_INLINE uint64_t wake_up(void) {
  return bpf_ringbuf_query(&calls, BPF_RB_AVAIL_DATA) > settings.calls_bytes / 4 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

SAMPLER_INLINE int is_within_limit(uint64_t now) {
  uint32_t key = 0;
  struct second *second = settings.rate_limit ? bpf_map_lookup_elem(&this_second, &key) : 0;
  if (!second) return 1;
  if (now - second->start_ns >= 1000000000) {
    second->start_ns = now;
    second->calls = 0;
  }
  if (__sync_fetch_and_add(&second->calls, 1) < settings.rate_limit) return 1;
  count_loss(UPROBE_CALLS_LIMITED);
  return 0;
}

/* 1: told. */
SAMPLER_INLINE int tell(struct task_struct *task, const struct uprobe_frame *frame, uint64_t end_ns, uint64_t latency_ns, uint32_t end) {
  if (latency_ns < settings.least_ns || !is_within_limit(end_ns)) return 0;
  struct uprobe_call *call = bpf_ringbuf_reserve(&calls, sizeof(*call), 0);
  if (!call) {
    count_loss(UPROBE_CALLS_LOST);
    return 0;
  }
  call->start_ns = frame->start_ns;
  call->end_ns = end_ns;
  call->latency_ns = latency_ns;
  call->pid = (uint32_t)task->tgid;
  call->tid = (uint32_t)task->pid;
  call->function = frame->function;
  call->end = end;
  bpf_probe_read_kernel_str(call->comm, sizeof(call->comm), &task->comm);
  bpf_ringbuf_submit(call, wake_up());
  return 1;
}

/* ---- calls of a thread ---- */

SAMPLER_INLINE struct uprobe_frame *frame_at(struct uprobe_thread *thread, uint32_t at) {
  return &thread->frames[at & (UPROBE_MAX_DEPTH - 1)];
}

SAMPLER_INLINE uint64_t without_probes(const struct uprobe_frame *frame, uint64_t raw_ns) {
  uint64_t cost = settings.self_ns[frame->is_stepped & 1] + frame->nested_ns;
  return raw_ns > cost ? raw_ns - cost : 0;
}

/* What became of a call that an exit ends. */
enum closing { NOT_FOUND, CLOSED, CLOSED_AND_TOLD };

/* Takes the innermost call off. A global function, as it is verified once so. */
__attribute__((noinline)) int close_call(struct uprobe_thread *thread, uint64_t now, uint32_t end) {
  if (!thread || thread->depth == 0) return NOT_FOUND;
  uint32_t depth = --thread->depth;
  const struct uprobe_frame *frame = frame_at(thread, depth);
  uint32_t at = shard_of(frame->function);
  struct uprobe_row *row = bpf_map_lookup_elem(&rows, &at);
  uint64_t raw_ns = now - frame->start_ns, latency_ns = without_probes(frame, raw_ns);
  if (depth > 0) frame_at(thread, depth - 1)->nested_ns += frame->nested_ns + settings.pair_ns[frame->is_stepped & 1];
  if (row && end == UPROBE_FINISHED) add_latency(row, at, latency_ns, raw_ns);
  else if (row) add(&row->unwound, 1);
  if (!settings.has_calls) return CLOSED;
  return tell(bpf_get_current_task_btf(), frame, now, latency_ns, end) ? CLOSED_AND_TOLD : CLOSED;
}

SAMPLER_INLINE int is_on_signal_stack(struct task_struct *task, uint64_t sp) { return sp - task->sas_ss_sp < task->sas_ss_size; }

struct stack_search {
  uint64_t sp;
  uint64_t is_same;
};

static long compare_stack(struct task_struct *task, struct vm_area_struct *vma, struct stack_search *search) {
  search->is_same = search->sp >= BPF_CORE_READ(vma, vm_start) && search->sp < BPF_CORE_READ(vma, vm_end);
  return 0;
}

/* Handlers of signals may have a stack of their own, fibers do. What cannot be told is taken for one stack. */
SAMPLER_INLINE int is_other_stack(uint64_t sp, uint64_t now_sp) {
  struct task_struct *task = bpf_get_current_task_btf();
  if (is_on_signal_stack(task, now_sp) != is_on_signal_stack(task, sp)) return is_on_signal_stack(task, now_sp);
  struct stack_search search = {.sp = sp, .is_same = 1};
  if (settings.finds_mappings) bpf_find_vma(task, now_sp, compare_stack, &search, 0);
  return !search.is_same;
}

/* The stack grows down: a frame below the stack pointer is gone, unless it lies on another stack. */
SAMPLER_INLINE int is_gone(const struct uprobe_frame *frame, uint64_t sp) {
  if (frame->sp > sp) return 0;
  return frame->sp == sp || !is_other_stack(frame->sp, sp);
}

SAMPLER_INLINE void close_gone(struct uprobe_thread *thread, uint64_t sp) {
  for (int i = 0; i < UPROBE_MAX_DEPTH; i++) {
    if (thread->depth == 0 || !is_gone(frame_at(thread, thread->depth - 1), sp)) return;
    close_call(thread, bpf_ktime_get_ns(), UPROBE_UNWOUND);
  }
}

/* How many calls there are up to the one that the function's exit at this stack pointer ends; 0: none. */
SAMPLER_INLINE uint32_t find_call(struct uprobe_thread *thread, uint64_t sp, uint32_t function) {
  uint32_t depth = thread->depth;
  for (int i = 0; i < UPROBE_MAX_DEPTH; i++) {
    if (depth == 0) return 0;
    const struct uprobe_frame *frame = frame_at(thread, depth - 1);
    if (frame->sp == sp && frame->function == function) return depth;
    depth--;
  }
  return 0;
}

/* ---- callers ---- */

static long note_mapping(struct task_struct *task, struct vm_area_struct *vma, struct uprobe_caller *caller) {
  struct file *file = BPF_CORE_READ(vma, vm_file);
  if (!file) return 0;
  caller->inode = BPF_CORE_READ(file, f_inode, i_ino);
  caller->device = BPF_CORE_READ(file, f_inode, i_sb, s_dev);
  caller->file_offset += (BPF_CORE_READ(vma, vm_pgoff) << 12) - BPF_CORE_READ(vma, vm_start);
  return 0;
}

SAMPLER_INLINE void note_caller(uint64_t sp, uint32_t function) {
  struct uprobe_caller_key key = {.function = function, .pid = (uint32_t)(bpf_get_current_pid_tgid() >> 32)};
  if (bpf_probe_read_user(&key.address, sizeof(key.address), (const void *)sp)) key.address = 0;
  struct uprobe_caller *known = bpf_map_lookup_elem(&callers, &key);
  if (!known) {
    struct uprobe_caller fresh = {.file_offset = key.address};
    if (settings.finds_mappings) bpf_find_vma(bpf_get_current_task_btf(), key.address - 1, note_mapping, &fresh, 0);
    bpf_map_update_elem(&callers, &key, &fresh, BPF_NOEXIST);  /* another thread may have been quicker */
    known = bpf_map_lookup_elem(&callers, &key);
  }
  if (known) add(&known->calls, 1);
  else count_loss(UPROBE_CALLERS_FULL);
}

#ifdef UPROBE_STACKS
#include "collect/bpf/uprobe_stack.bpf.h"
#endif

/* ---- probes ---- */

SAMPLER_INLINE struct uprobe_thread *current_thread(uint64_t flags) {
  return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, flags);
}

SAMPLER_INLINE void begin_call(const struct pt_regs *ctx, const struct uprobe_site *site, struct uprobe_thread *thread, struct uprobe_row *row) {
  if (thread) close_gone(thread, ctx->sp);
  if (!thread || thread->depth >= UPROBE_MAX_DEPTH) {
    add(&row->untimed, 1);
    return count_loss(thread ? UPROBE_TOO_DEEP : UPROBE_NO_THREAD_ROOM);
  }
  struct uprobe_frame *frame = frame_at(thread, thread->depth++);
  frame->sp = ctx->sp;
  frame->nested_ns = 0;
  frame->function = site->function;
  frame->is_stepped = site->is_stepped;
  frame->start_ns = bpf_ktime_get_ns();  /* last, so that little of the probe is in it */
}

/* The function's own jump to its entry is no call. */
SAMPLER_INLINE int goes_on(const struct pt_regs *ctx, struct uprobe_thread *thread, uint32_t function) {
  if (!thread || !thread->continues) return 0;
  thread->continues = 0;
  return find_call(thread, ctx->sp, function) != 0;
}

SEC("uprobe")
int on_entry(struct pt_regs *ctx) {
  uint32_t at = (uint32_t)bpf_get_attach_cookie(ctx);
  if (!is_wanted()) return 0;
  const struct uprobe_site *site = bpf_map_lookup_elem(&sites, &at);
  if (!site) return 0;
  uint32_t shard = shard_of(site->function);
  struct uprobe_row *row = bpf_map_lookup_elem(&rows, &shard);
  struct uprobe_thread *thread = settings.has_latency ? current_thread(BPF_LOCAL_STORAGE_GET_F_CREATE) : 0;
  if (!row || goes_on(ctx, thread, site->function)) return 0;
  add(&row->calls, 1);
  if (settings.has_callers) note_caller(ctx->sp, site->function);
  if (!settings.has_latency) return 0;
  if (site->is_untimed) add(&row->untimed, 1);
  else begin_call(ctx, site, thread, row);
  return 0;
}

/* As the instruction set numbers them: the last bit turns it round. */
SAMPLER_INLINE int is_taken(uint64_t flags, uint32_t condition) {
  if (condition >= UPROBE_ALWAYS) return 1;
  int carry = flags & 1, parity = flags >> 2 & 1, zero = flags >> 6 & 1, sign = flags >> 7 & 1, overflow = flags >> 11 & 1;
  int holds = 0;
  switch (condition >> 1) {
    case 0: holds = overflow; break;
    case 1: holds = carry; break;
    case 2: holds = zero; break;
    case 3: holds = carry | zero; break;
    case 4: holds = sign; break;
    case 5: holds = parity; break;
    case 6: holds = sign != overflow; break;
    default: holds = zero | (sign != overflow); break;
  }
  return holds != (int)(condition & 1);
}

SAMPLER_INLINE uint64_t register_of(const struct pt_regs *ctx, uint32_t number) {
  uint64_t values[16] = {ctx->ax, ctx->cx, ctx->dx, ctx->bx, ctx->sp, ctx->bp, ctx->si, ctx->di,
                         ctx->r8, ctx->r9, ctx->r10, ctx->r11, ctx->r12, ctx->r13, ctx->r14, ctx->r15};
  return number < 16 ? values[number & 15] : 0;
}

SAMPLER_INLINE int is_between(uint64_t address, uint64_t start, uint64_t end) { return address - start < end - start; }

/* A jump through a table of the function's own does not leave it. */
SAMPLER_INLINE int leaves(struct pt_regs *ctx, const struct uprobe_site *site) {
  if (site->jump == UPROBE_FIXED) return 1;
  uint64_t target = site->base < UPROBE_NO_REGISTER ? register_of(ctx, site->base) : 0;
  if (site->jump == UPROBE_BY_MEMORY) {
    if (site->index < UPROBE_NO_REGISTER) target += register_of(ctx, site->index) * site->scale;
    uint64_t place = target + (uint64_t)site->displacement;
    if (bpf_probe_read_user(&target, sizeof(target), (const void *)place)) return 0;
  }
  target -= ctx->ip - site->address;
  return !is_between(target, site->start, site->end) && !is_between(target, site->cold_start, site->cold_end);
}

/* Makes the innermost call of one that is not: those above it are of other stacks. A global function, as it is seldom run. */
__attribute__((noinline)) int bring_up(struct uprobe_thread *thread, uint32_t at) {
  if (!thread || thread->depth > UPROBE_MAX_DEPTH) return 0;
  uint32_t last = thread->depth - 1;
  struct uprobe_frame wanted = *frame_at(thread, at);
  for (int i = 0; i < UPROBE_MAX_DEPTH; i++) {
    if (at >= last) break;
    *frame_at(thread, at) = *frame_at(thread, at + 1);
    at++;
  }
  *frame_at(thread, last) = wanted;
  return 1;
}

/* Where the function at the top leaves its stack pointer, everything at it and below is gone. */
SAMPLER_INLINE int end_call(struct uprobe_thread *thread, uint64_t sp, uint32_t function, uint64_t now) {
  for (int i = 0; i < UPROBE_MAX_DEPTH; i++) {
    if (thread->depth == 0) return NOT_FOUND;
    const struct uprobe_frame *top = frame_at(thread, thread->depth - 1);
    if (top->sp == sp && top->function == function) return close_call(thread, now, UPROBE_FINISHED);
    if (!is_gone(top, sp)) break;
    close_call(thread, now, UPROBE_UNWOUND);
  }
  uint32_t depth = find_call(thread, sp, function);
  if (!depth || !bring_up(thread, depth - 1)) return NOT_FOUND;
  return close_call(thread, now, UPROBE_FINISHED);
}

SEC("uprobe")
int on_exit(struct pt_regs *ctx) {
  uint64_t now = bpf_ktime_get_ns();
  uint32_t at = (uint32_t)bpf_get_attach_cookie(ctx);
  if (!is_wanted()) return 0;
  const struct uprobe_site *site = bpf_map_lookup_elem(&sites, &at);
  if (!site || !is_taken(ctx->flags, site->condition) || !leaves(ctx, site)) return 0;
  if (!settings.has_latency) {  /* only those that go on are probed then: the entry will count */
    uint32_t shard = shard_of(site->function);
    struct uprobe_row *row = bpf_map_lookup_elem(&rows, &shard);
    if (row) add(&row->calls, -1ull);
    return 0;
  }
  struct uprobe_thread *thread = current_thread(0);
  if (thread && site->kind == UPROBE_CONTINUE) {
    thread->continues = 1;
    return 0;
  }
  uint64_t sp = ctx->sp - (site->kind == UPROBE_RETURNED ? sizeof(uint64_t) : 0);
  int closing = thread ? end_call(thread, sp, site->function, now) : NOT_FOUND;
  if (closing == NOT_FOUND) count_loss(UPROBE_UNMATCHED);
#ifdef UPROBE_STACKS
  if (closing == CLOSED_AND_TOLD) tell_stack(ctx, thread, now);
#endif
  return 0;
}

/* ---- calls that have not ended ---- */

SAMPLER_INLINE void tell_open(struct task_struct *task, struct uprobe_thread *thread, uint32_t end) {
  uint64_t now = bpf_ktime_get_ns();
  for (uint32_t i = 0; i < UPROBE_MAX_DEPTH; i++) {
    if (i >= thread->depth) return;
    const struct uprobe_frame *frame = frame_at(thread, i);
    tell(task, frame, now, without_probes(frame, now - frame->start_ns), end);
  }
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_end, struct task_struct *task) {
  struct uprobe_thread *thread = current_thread(0);
  if (!thread) return 0;
  tell_open(bpf_get_current_task_btf(), thread, UPROBE_THREAD_ENDED);
  thread->depth = 0;
  return 0;
}

/* At the end of the run, for each task. */
SEC("iter/task")
int on_task(struct bpf_iter__task *context) {
  struct task_struct *task = context->task;
  if (!task) return 0;
  struct uprobe_thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
  if (thread) tell_open(task, thread, UPROBE_OPEN);
  return 0;
}
