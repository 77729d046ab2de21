// Calls that are known: how many, how long, and how they end. calls MODE prints "FUNCTION CALLS NANOSECONDS" (the median of what it
// measured itself, 0: none) for what it knows, last a line with a result that tracing must not change. For the tests of uprobe.
#include <pthread.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define APART __attribute__((noinline, noclone, noipa))

namespace {

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000 + static_cast<uint64_t>(t.tv_nsec);
}

void spin_ns(uint64_t ns) {
  const uint64_t end = now_ns() + ns;
  while (now_ns() < end) {}
}

void sleep_ns(uint64_t ns) {
  timespec left = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  while (nanosleep(&left, &left) != 0) {}
}

void tell(const char* name, long calls, uint64_t ns) { printf("%s %ld %llu\n", name, calls, static_cast<unsigned long long>(ns)); }

}  // namespace

// ---- how many ----

APART uint64_t counted(uint64_t x) { return x * 2654435761u + 1; }

static uint64_t count(long calls, int threads) {
  std::vector<uint64_t> results(static_cast<size_t>(threads));
  auto work = [&](size_t which) {
    uint64_t x = which;
    for (long i = 0; i < calls; i++) x = counted(x);
    results[which] = x;
  };
  const uint64_t start = now_ns();
  std::vector<std::thread> all;
  for (size_t i = 0; i < results.size(); i++) all.emplace_back(work, i);
  uint64_t sum = 0;
  for (size_t i = 0; i < results.size(); i++) all[i].join(), sum += results[i];
  tell("counted", calls * threads, 0);
  printf("elapsed %llu\n", static_cast<unsigned long long>(now_ns() - start));
  return sum;
}

// ---- how long ----

static std::vector<uint64_t> own_ns;  // what a function says of itself, call by call

APART void takes_1ms() {
  const uint64_t start = now_ns();
  sleep_ns(1000000);
  own_ns.push_back(now_ns() - start);
}
APART void takes_100ms() {
  const uint64_t start = now_ns();
  sleep_ns(100000000);
  own_ns.push_back(now_ns() - start);
}
APART void takes_10us() {
  const uint64_t start = now_ns();
  spin_ns(10000);
  own_ns.push_back(now_ns() - start);
}
APART void takes_10us_many(int times) {
  for (int i = 0; i < times; i++) takes_10us();
  asm volatile("");
}

static void tell_median(const char* name) {
  std::nth_element(own_ns.begin(), own_ns.begin() + static_cast<long>(own_ns.size() / 2), own_ns.end());
  tell(name, static_cast<long>(own_ns.size()), own_ns[own_ns.size() / 2]);
  own_ns.clear();
}

static uint64_t latency() {
  own_ns.reserve(4096);
  for (int i = 0; i < 51; i++) takes_1ms();
  tell_median("takes_1ms");
  for (int i = 0; i < 3; i++) takes_100ms();
  tell_median("takes_100ms");
  for (int i = 0; i < 200; i++) takes_10us_many(10);
  tell_median("takes_10us");
  tell("takes_10us_many", 200, 0);
  return 1;
}

// ---- how they end ----

APART uint64_t recurse(int depth) {
  if (depth == 0) return 1;
  const uint64_t below = recurse(depth - 1);
  asm volatile("");
  return below + static_cast<uint64_t>(depth);
}

APART int inner(int i) {
  if (i % 2) throw std::runtime_error("odd");
  return i;
}
APART int middle(int i) {
  const int x = inner(i);
  asm volatile("");
  return x + 1;
}
APART int outer(int i) {
  const int x = middle(i);
  asm volatile("");
  return x + 1;
}
APART int catches(int i) {
  try {
    return outer(i);
  } catch (const std::runtime_error&) {
    return -1;
  }
}

static jmp_buf place;
APART void jumps(int i) {
  if (i % 4 == 0) longjmp(place, 1);
  asm volatile("");
}
APART void around_jumps(int i) {
  jumps(i);
  asm volatile("");
}

static uint64_t ends() {
  volatile uint64_t sum = 0;
  for (int i = 0; i < 20; i++) sum = sum + recurse(50);
  tell("recurse", 20 * 51, 0);
  for (int i = 0; i < 200; i++) sum = sum + static_cast<uint64_t>(catches(i));
  for (const char* name : {"inner", "middle", "outer", "catches"}) tell(name, 200, 0);
  volatile int i = 0;
  if (setjmp(place)) sum = sum + 7;
  while (i < 100) {
    i = i + 1;
    around_jumps(i);
  }
  tell("jumps", 100, 0);
  tell("around_jumps", 100, 0);
  return sum;
}

// ---- jumps ----

APART int tail_end(int x) { return x * 3 + 1; }
APART int tail_start(int x) { return tail_end(x + 1); }
static int (*volatile chosen)(int) = tail_end;
APART int tail_by_pointer(int x) { return chosen(x - 1); }

// Through a table, without a frame: none of these jumps is an exit.
APART int by_table(int x) {
  switch (x & 7) {
    case 0: return x + 11;
    case 1: return x * 13;
    case 2: return x - 17;
    case 3: return x ^ 19;
    case 4: return x | 23;
    case 5: return x & 29;
    case 6: return x / 31;
    default: return x % 37;
  }
}

// A loop that begins with the function, and an exit that depends on a condition.
extern "C" uint64_t loops_at_start(uint64_t times);
extern "C" uint64_t leaves_by_condition(uint64_t x);
asm(".text\n"
    ".globl loops_at_start, leaves_by_condition, condition_end\n"
    ".type loops_at_start, @function\n"
    "loops_at_start:\n"
    "  dec %rdi\n"
    "  jnz loops_at_start\n"
    "  mov $5, %eax\n"
    "  ret\n"
    ".size loops_at_start, .-loops_at_start\n"
    ".type leaves_by_condition, @function\n"
    "leaves_by_condition:\n"
    "  mov %rdi, %rax\n"
    "  test $1, %edi\n"
    "  jnz condition_end\n"
    "  inc %rax\n"
    "  ret\n"
    ".size leaves_by_condition, .-leaves_by_condition\n"
    ".type condition_end, @function\n"
    "condition_end:\n"
    "  add $100, %rax\n"
    "  ret\n"
    ".size condition_end, .-condition_end\n");

// What the compiler puts out of line is no call.
APART int with_cold_part(int x) {
  if (__builtin_expect(x % 50 == 49, 0)) {
    fprintf(stderr, "%s", x < 0 ? "never\n" : "");
    if (x < 0) throw std::runtime_error("never");
    return -x;
  }
  return x + 2;
}

static uint64_t jump_kinds() {
  uint64_t sum = 0;
  for (int i = 0; i < 100; i++) {
    sum += static_cast<uint64_t>(tail_start(i));
    sum += static_cast<uint64_t>(tail_by_pointer(i));
    sum += static_cast<uint64_t>(by_table(i));
    sum += loops_at_start(10);
    sum += leaves_by_condition(static_cast<uint64_t>(i));
    sum += static_cast<uint64_t>(with_cold_part(i));
  }
  for (const char* name : {"tail_start", "tail_by_pointer", "by_table", "loops_at_start", "leaves_by_condition", "with_cold_part"}) tell(name, 100, 0);
  tell("tail_end", 200, 0);
  tell("condition_end", 50, 0);
  return sum;
}

// ---- stacks ----

static ucontext_t scheduler, fibers[2];
static int turns;

APART void suspends(int which) {
  for (int i = 0; i < 5; i++) swapcontext(&fibers[which], &scheduler);
  turns++;
}
APART void resumes(int which) {
  swapcontext(&scheduler, &fibers[which]);
  turns++;
}
static void fiber_main(int which) {
  for (int i = 0; i < 10; i++) suspends(which);
}

static uint64_t switches_stacks() {
  constexpr size_t kBytes = 65536, kGuard = 4096;
  for (int i = 0; i < 2; i++) {
    char* stack = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(stack, kGuard, PROT_NONE);
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stack;
    fibers[i].uc_stack.ss_size = kBytes;
    fibers[i].uc_link = &scheduler;
    makecontext(&fibers[i], reinterpret_cast<void (*)()>(fiber_main), 1, i);
  }
  for (int turn = 0; turn < 51; turn++)
    for (int i = 0; i < 2; i++) resumes(i);
  tell("suspends", 20, 0);
  tell("resumes", 102, 0);
  return static_cast<uint64_t>(turns);
}

// ---- from where ----

// Slow when asked to be.
APART uint64_t answers(int x, bool is_slow) {
  if (is_slow) sleep_ns(2000000);
  return static_cast<uint64_t>(x) * 3;
}
APART uint64_t for_a_report(int x, bool is_slow) {
  const uint64_t answer = answers(x, is_slow);
  asm volatile("");
  return answer + 1;
}
APART uint64_t for_a_query(int x, bool is_slow) {
  const uint64_t answer = answers(x, is_slow);
  asm volatile("");
  return answer + 2;
}

static uint64_t from_two_places() {
  uint64_t sum = 0;
  for (int i = 0; i < 60; i++) sum += for_a_report(i, i % 2) + for_a_query(i, i % 6 == 0);
  tell("answers", 120, 0);
  return sum;
}

// ---- never ----

APART void never_returns() {
  for (;;) pause();
}
APART void ends_its_thread() { pthread_exit(nullptr); }

static uint64_t never() {
  std::thread(never_returns).detach();
  std::thread(ends_its_thread).join();
  sleep_ns(200000000);
  tell("never_returns", 1, 0);
  tell("ends_its_thread", 1, 0);
  return 3;
}

static uint64_t forever() {
  for (uint64_t x = 0;; x = counted(x)) {
    takes_1ms();
    own_ns.clear();
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  auto number = [&](int which, long otherwise) { return argc > which ? atol(argv[which]) : otherwise; };
  uint64_t result = 0;
  if (!strcmp(mode, "count")) result = count(number(2, 1000), static_cast<int>(number(3, 1)));
  else if (!strcmp(mode, "latency")) result = latency();
  else if (!strcmp(mode, "ends")) result = ends();
  else if (!strcmp(mode, "jumps")) result = jump_kinds();
  else if (!strcmp(mode, "stacks")) result = switches_stacks();
  else if (!strcmp(mode, "callers")) result = from_two_places();
  else if (!strcmp(mode, "never")) result = never();
  else if (!strcmp(mode, "forever")) result = forever();
  else return 2;
  printf("result %llu\n", static_cast<unsigned long long>(result));
  fflush(stdout);
  _exit(static_cast<int>(result % 100));
}
