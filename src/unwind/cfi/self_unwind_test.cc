// The unwinder on this very process: real CFI, real stacks, known answers. Built without frame pointers.
#if defined(__GNUC__) && !defined(__clang__)
// A landing pad in a .cold part would lie outside the function that the tests look for.
#pragma GCC optimize("no-reorder-blocks-and-partition")
#endif
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>

#include <algorithm>

#include <fmt/format.h>

#include "unwind/cfi/own_process_for_tests.h"

// TSan delivers signals late, at calls that it knows: no step could be unwound where it happens.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

namespace cprof::unwind {
namespace {

#if defined(__clang__)
#define NESTED __attribute__((noinline))
#else
#define NESTED __attribute__((noinline, noclone, optimize("omit-frame-pointer")))
#endif

Stack unwind_now(const RegisterSet& registers, size_t max_depth = 512) {
  static OwnModules* modules = nullptr;
  delete modules;
  modules = new OwnModules;
  OwnMemory memory;
  SnapshotUnwinder unwinder(Machine::kX86_64);
  return unwinder.unwind(registers, memory, *modules, max_depth);
}

// getcontext's rip is the return address of its call, inside the caller: exact enough for a first frame.
#define CAPTURE(stack, depth)                     \
  do {                                            \
    ucontext_t capture_context;                   \
    getcontext(&capture_context);                 \
    stack = unwind_now(registers_of(capture_context), depth); \
  } while (0)

uint64_t function_of(const Frame& frame) {
  static OwnModules modules;
  uint64_t pc = frame.pc - frame.is_return_address;
  auto module = modules.find(pc);
  auto range = module && module->table ? module->table->function_range(pc - module->bias) : std::nullopt;
  return range ? range->first + module->bias : 0;
}
template <typename Function>
uint64_t address_of(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}
size_t count_of(const Stack& stack, uint64_t function) {
  return static_cast<size_t>(std::count_if(stack.frames.begin(), stack.frames.end(),
                                           [&](const Frame& frame) { return function_of(frame) == function; }));
}

volatile int g_sink;
Stack g_stack;
size_t g_max_depth = 512;

NESTED void leaf() {
  CAPTURE(g_stack, g_max_depth);
  g_sink = g_sink + 1;
}
NESTED void with_alloca(int n) {
  char* block = static_cast<char*>(__builtin_alloca(static_cast<size_t>(n) * 16));
  block[0] = 1;
  leaf();
  g_sink = g_sink + block[0];
}
NESTED void aligned(int n) {
  alignas(64) volatile char block[128];
  block[n & 127] = 1;
  with_alloca(n + block[n & 127]);
  g_sink = g_sink + block[0];
}
NESTED void recurse(int depth) {
  if (depth == 0)
    aligned(5);
  else
    recurse(depth - 1);
  g_sink = g_sink + depth;
}

TEST(SelfUnwind, NamesEveryCallerDownToTheRoot) {
  g_max_depth = 512;
  recurse(3);
  ASSERT_GE(g_stack.frames.size(), 8u);
  EXPECT_EQ(g_stack.stop, StopReason::kUndefinedReturn);
  uint64_t expected[] = {address_of(leaf), address_of(with_alloca), address_of(aligned), address_of(recurse),
                         address_of(recurse), address_of(recurse), address_of(recurse)};
  for (size_t i = 0; i < std::size(expected); i++) EXPECT_EQ(function_of(g_stack.frames[i]), expected[i]) << i;
  EXPECT_FALSE(g_stack.frames[0].is_return_address);
  EXPECT_TRUE(g_stack.frames[1].is_return_address);
  EXPECT_EQ(g_stack.frames[1].origin, FrameOrigin::kCfi);
}

TEST(SelfUnwind, MaxDepthKeepsTheLeafSide) {
  g_max_depth = 512;
  recurse(200);
  Stack whole = g_stack;
  EXPECT_TRUE(whole.is_complete());
  EXPECT_EQ(count_of(whole, address_of(recurse)), 201u);
  g_max_depth = 64;
  recurse(200);
  EXPECT_EQ(g_stack.stop, StopReason::kMaxDepth);
  ASSERT_EQ(g_stack.frames.size(), 64u);
  for (size_t i = 1; i < 64; i++) EXPECT_EQ(function_of(g_stack.frames[i]), function_of(whole.frames[i])) << i;
  g_max_depth = 512;
}

// The context of the interrupted code is on the stack; handlers see themselves through the signal frame.
void on_signal(int, siginfo_t*, void*) {
  leaf();
  g_sink = g_sink + 1;  // no tail call
}

NESTED void raise_here() {
  raise(SIGUSR1);
  g_sink = g_sink + 1;
}

struct SignalCase {
  const char* name;
  int flags;
};
void PrintTo(const SignalCase& signal_case, std::ostream* out) { *out << signal_case.name; }
class SelfUnwindSignal : public testing::TestWithParam<SignalCase> {};

TEST_P(SelfUnwindSignal, GoesThroughTheHandlersFrame) {
  static char alternate[64 * 1024];
  stack_t stack{alternate, 0, sizeof(alternate)}, old_stack;
  ASSERT_EQ(sigaltstack(&stack, &old_stack), 0);
  struct sigaction action{}, old_action;
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | GetParam().flags;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old_action), 0);
  raise_here();
  sigaction(SIGUSR1, &old_action, nullptr);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);

  EXPECT_TRUE(g_stack.is_complete());
  EXPECT_EQ(count_of(g_stack, address_of(on_signal)), 1u);
  EXPECT_EQ(count_of(g_stack, address_of(raise_here)), 1u);
  auto interrupted = std::find_if(g_stack.frames.begin(), g_stack.frames.end(),
                                  [](const Frame& frame) { return frame.origin == FrameOrigin::kSignal; });
  ASSERT_NE(interrupted, g_stack.frames.end());
  EXPECT_FALSE(interrupted->is_return_address);
}
INSTANTIATE_TEST_SUITE_P(Stacks, SelfUnwindSignal,
                         testing::Values(SignalCase{"same", 0}, SignalCase{"alternate", SA_ONSTACK}),
                         [](const auto& test) { return std::string(test.param.name); });

// Single-steps a child: every instruction that `work` executes, in every function it calls, is a sample.
class Stepper {
 public:
  static inline thread_local Stepper* current = nullptr;
  explicit Stepper(uint64_t required, size_t every) : required_(required), every_(every) { modules.cached = true; }
  SnapshotUnwinder unwinder{Machine::kX86_64};
  OwnMemory memory;
  OwnModules modules;
  size_t samples = 0, whole = 0, wrongly_whole = 0;
  std::vector<std::string> bad;

  void sample(const ucontext_t& context) {
    if (tick_++ % every_ != 0) return;
    const Stack& stack = unwinder.unwind(registers_of(context), memory, modules, 512);
    samples++;
    bool has_caller = std::any_of(stack.frames.begin(), stack.frames.end(), [&](const Frame& frame) {
      return frame.pc >= required_ && frame.pc - required_ < 2048;
    });
    if (stack.is_complete() && has_caller) {
      whole++;
    } else {
      bad.push_back(describe(stack));
      wrongly_whole += stack.is_complete();
    }
  }
  std::string text() const {
    std::string all;
    for (const std::string& line : bad) all += line + "\n";
    return all;
  }

 private:
  static std::string describe(const Stack& stack) {
    std::string line = fmt::format("stop {}:", static_cast<int>(stack.stop));
    for (const Frame& frame : stack.frames) {
      Dl_info info{};
      dladdr(reinterpret_cast<void*>(frame.pc), &info);
      line += fmt::format(" {}+{:#x}({})", info.dli_fname ? info.dli_fname : "?",
                          frame.pc - reinterpret_cast<uint64_t>(info.dli_fbase), info.dli_sname ? info.dli_sname : "");
    }
    return line;
  }

  uint64_t required_;
  size_t every_, tick_ = 0;
};

void on_trap(int, siginfo_t*, void* context) { Stepper::current->sample(*static_cast<ucontext_t*>(context)); }

// Its instructions are stepped through too, so they have CFI of their own.
extern "C" void cprof_test_set_trap_flag(uint64_t flag);
__asm__(
    ".pushsection .text\n"
    ".type cprof_test_set_trap_flag, @function\n"
    "cprof_test_set_trap_flag:\n"
    ".cfi_startproc\n"
    "pushfq\n .cfi_adjust_cfa_offset 8\n"
    "andq $~0x100, (%rsp)\n"
    "orq %rdi, (%rsp)\n"
    "popfq\n .cfi_adjust_cfa_offset -8\n"
    "ret\n"
    ".cfi_endproc\n"
    ".size cprof_test_set_trap_flag, . - cprof_test_set_trap_flag\n"
    ".popsection\n");
constexpr uint64_t kTrapFlag = 0x100;

#define STEP_THROUGH(stepper, ...)                            \
  do {                                                        \
    struct sigaction step_action{}, step_old;                 \
    step_action.sa_sigaction = on_trap;                       \
    step_action.sa_flags = SA_SIGINFO | SA_NODEFER;           \
    Stepper::current = &stepper;                              \
    sigaction(SIGTRAP, &step_action, &step_old);              \
    cprof_test_set_trap_flag(kTrapFlag);                      \
    __VA_ARGS__;                                              \
    cprof_test_set_trap_flag(0);                              \
    sigaction(SIGTRAP, &step_old, nullptr);                   \
  } while (0)

// libc's own: the sanitizers put another vfork before it, which hides the return address where no CFI can say.
extern "C" pid_t __vfork() __attribute__((returns_twice));

NESTED void step_vfork(Stepper& stepper) {
  STEP_THROUGH(stepper, {
    pid_t pid = __vfork();
    if (pid == 0) _exit(0);
    g_sink = pid;
  });
}
TEST(SelfUnwind, EveryInstructionOfVfork) {
  Stepper stepper(address_of(step_vfork), 1);
  step_vfork(stepper);
  while (waitpid(-1, nullptr, WNOHANG) > 0) {}
  EXPECT_GT(stepper.samples, 10u);
  EXPECT_EQ(stepper.whole, stepper.samples) << stepper.text();
}

NESTED void step_clock(Stepper& stepper) {
  STEP_THROUGH(stepper, {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    g_sink = static_cast<int>(now.tv_nsec);
  });
}
TEST(SelfUnwind, EveryInstructionOfTheVdso) {
  Stepper stepper(address_of(step_clock), 1);
  step_clock(stepper);
  EXPECT_GT(stepper.samples, 20u);
  EXPECT_EQ(stepper.whole, stepper.samples) << stepper.text();
}

int by_value(const void* a, const void* b) { return *static_cast<const int*>(a) - *static_cast<const int*>(b); }

// Prologues, epilogues, PLT stubs, lazy binding (rbx in ld.so), exceptions, DRAP: every 7th of their instructions.
NESTED void step_library(Stepper& stepper) {
  STEP_THROUGH(stepper, {
    int values[40];
    for (int i = 0; i < 40; i++) values[i] = (i * 7919) % 41;
    qsort(values, 40, sizeof(int), by_value);
    char text[64];
    snprintf(text, sizeof(text), "%d %f", values[3], 2.5);
    g_sink = static_cast<int>(std::string(text).size() + static_cast<size_t>(values[0]));
  });
}
TEST(SelfUnwind, EveryKindOfLibraryCode) {
  Stepper stepper(address_of(step_library), 1);
  step_library(stepper);
  EXPECT_GT(stepper.samples, 1000u);
  EXPECT_EQ(stepper.whole, stepper.samples) << stepper.text();
}

NESTED void step_throw(Stepper& stepper) {
  STEP_THROUGH(stepper, {
    try {
      throw 5;
    } catch (int value) {
      g_sink = value;
    }
  });
}
TEST(SelfUnwind, ExceptionsBeingThrown) {
  Stepper stepper(address_of(step_throw), 5);
  step_throw(stepper);
  EXPECT_GT(stepper.samples, 500u);
  // While libgcc writes the landing pad's registers over its own frame (a few instructions), no CFI describes it; such a
  // stack must not claim to be whole.
  EXPECT_GT(stepper.whole * 100, stepper.samples * 99) << stepper.text();
  EXPECT_EQ(stepper.wrongly_whole, 0u) << stepper.text();
}

void* thread_main(void*) {
  recurse(1);
  return nullptr;
}
TEST(SelfUnwind, ThreadsEndInClone) {
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, nullptr, thread_main, nullptr), 0);
  pthread_join(thread, nullptr);
  EXPECT_TRUE(g_stack.is_complete());
  EXPECT_EQ(count_of(g_stack, address_of(thread_main)), 1u);
}

}  // namespace
}  // namespace cprof::unwind

#endif
