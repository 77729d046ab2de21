#include "collect/inproc/handler.h"

#include <poll.h>
#include <ucontext.h>

#include "collect/inproc/interrupts.h"
#include "collect/inproc/stack_walk.h"

__thread struct cprof_thread* cprof_thread_ __attribute__((tls_model("initial-exec"))) = nullptr;
int cprof_uses_tsc_ = 0;

namespace cprof::inproc {

HandlerSetting handler_setting;

namespace {

#if defined(__x86_64__)
const cp_machine& machine() { return cp_machine_x86_64; }

void load_registers(const mcontext_t& from, Registers& into) {
  static constexpr uint8_t kByDwarfNumber[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
                                               REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (uint32_t n = 0; n < sizeof kByDwarfNumber; n++) into.value[n] = static_cast<uint64_t>(from.gregs[kByDwarfNumber[n]]);
}
#elif defined(__aarch64__)
const cp_machine& machine() { return cp_machine_aarch64; }

void load_registers(const mcontext_t& from, Registers& into) {
  for (uint32_t n = 0; n < 31; n++) into.value[n] = from.regs[n];
  into.value[31] = from.sp;
  into.value[32] = from.pc;
}
#endif

StackRange range(const std::atomic<uint64_t>& low, const std::atomic<uint64_t>& high) {
  return {low.load(std::memory_order_relaxed), high.load(std::memory_order_relaxed)};
}

StackRange alternate_stack(const stack_t& stack) {
  if (stack.ss_flags & SS_DISABLE) return {};
  const uint64_t low = reinterpret_cast<uint64_t>(stack.ss_sp);
  return {low, low + stack.ss_size};
}

// Asks the collector for the range of a stack that was found in no known one.
void report_stack(ThreadState& thread, uint64_t sp) {
  thread.seen_thread_pointer.store(reinterpret_cast<uint64_t>(__builtin_thread_pointer()), std::memory_order_relaxed);
  thread.seen_sp.store(sp, std::memory_order_release);
}

void capture(ThreadState& thread, const ucontext_t& context, const ModuleList& modules, SampleHeader& header) {
  SampleRing& ring = thread.samples;
  const uint64_t room = ring.room();
  const uint32_t limit = handler_setting.max_frames.load(std::memory_order_relaxed);
  Registers registers;
  load_registers(context.uc_mcontext, registers);
  const uint64_t sp = registers.value[machine().sp];

  const StackRange ranges[] = {range(thread.stack_low, thread.stack_high), range(thread.fiber_low, thread.fiber_high),
                               alternate_stack(context.uc_stack)};
  if (!ranges[0].holds(sp) && !ranges[1].holds(sp) && !ranges[2].holds(sp)) report_stack(thread, sp);

  // The longest stack must fit: one that is cut because the ring is full would be a wrong one.
  if (room < SampleHeader::kWords + limit) return ring.count_loss();
  StackReader reader(ranges, sizeof ranges / sizeof ranges[0], &thread.pages,
                     handler_setting.process_id.load(std::memory_order_relaxed));
  FrameSink sink{&ring, limit, 0};
  header.end = walk_stack({&modules, &machine(), &thread.rules, ranges[1]}, registers, reader, sink);
  header.generation = modules.generation;
  header.frame_count = static_cast<uint16_t>(sink.count);
  header.track = static_cast<uint32_t>(thread.scopes.track >> 44);
  for (uint64_t n = 0; n < SampleHeader::kWords; n++) ring.put(n, header.word(n));
  ring.commit(SampleHeader::kWords + sink.count);
}

// Single writer each: the thread's own handler, which does not interrupt itself.
void note_cost(ThreadState& thread, uint64_t ticks) {
  const uint32_t power = ticks > 4 ? 63u - static_cast<uint32_t>(__builtin_clzll(ticks)) : 2;
  const uint32_t bucket = power * 4 + (static_cast<uint32_t>(ticks >> (power - 2)) & 3);
  std::atomic<uint32_t>& count = thread.cost[bucket < kCostBuckets ? bucket : kCostBuckets - 1];
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  thread.cost_ticks.store(thread.cost_ticks.load(std::memory_order_relaxed) + ticks, std::memory_order_relaxed);
}

// Null: not a signal that this library asked for.
ThreadState* thread_of(const siginfo_t& info) {
  if (info.si_code == SI_TIMER) return owner_of_timer(reinterpret_cast<uint64_t>(info.si_value.sival_ptr));
  if (info.si_code >= POLL_IN && info.si_code <= POLL_HUP) return owner_of_event(info.si_fd);
  return nullptr;
}

}  // namespace

void take_sample(ThreadState& thread, const void* context, uint32_t missed) {
  SampleHeader header;
  header.ticks = cprof_ticks_();
  const uint64_t span = uint64_t{thread.period_ns.load(std::memory_order_relaxed)} * (uint64_t{missed} + 1);
  header.span_ns = span > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(span);
  // The epoch is visible before the list is read: a list that is replaced now is not freed under this handler.
  thread.handler_epoch.store(handler_setting.epoch.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  const ModuleList* modules = handler_setting.modules.load(std::memory_order_seq_cst);
  if (modules && thread.samples.has_memory()) {
    capture(thread, *static_cast<const ucontext_t*>(context), *modules, header);
    note_cost(thread, cprof_ticks_() - header.ticks);
  }
  thread.handler_epoch.store(0, std::memory_order_release);
}

void on_sampling_signal(int signal, siginfo_t* info, void* context) {
  ThreadState* thread = thread_of(*info);
  if (!thread) {
    auto previous = handler_setting.previous.load(std::memory_order_relaxed);
    if (previous) previous(signal, info, context);
    return;
  }
  if (!cprof_thread_) cprof_thread_ = &thread->scopes;
  take_sample(*thread, context, info->si_code == SI_TIMER ? static_cast<uint32_t>(info->si_overrun) : 0);
}

}  // namespace cprof::inproc
