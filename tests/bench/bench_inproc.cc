// What a scope and a sample cost, against the floor measured in the same run: two readings of the counter and one record of 24
// bytes. Prints one JSON object. Ratios only mean something; rounds alternate, the median is taken.
#include <cprof/cprof.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kRounds = 11;
constexpr uint64_t kScopes = 1'000'000;
constexpr uint64_t kFloorRecords = 64 * 1024;

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename F>
double cost_of(F body, uint64_t times = kScopes) {
  const double before = cpu_ns();
  body();
  return (cpu_ns() - before) / static_cast<double>(times);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct FloorRecord {
  uint64_t start, end, word;
};
FloorRecord floor_ring[kFloorRecords];
uint64_t floor_head = 0;

void floor_loop() {
  for (uint64_t n = 0; n < kScopes; n++) {
    const uint64_t start = __builtin_ia32_rdtsc();
    __asm__ volatile("" ::: "memory");
    FloorRecord& record = floor_ring[floor_head & (kFloorRecords - 1)];
    record = {start, __builtin_ia32_rdtsc(), n};
    __atomic_store_n(&floor_head, floor_head + 1, __ATOMIC_RELEASE);
  }
}

void scope_loop() {
  for (uint64_t n = 0; n < kScopes; n++) {
    CPROF_SCOPE("bench");
    __asm__ volatile("" ::: "memory");
  }
}

void call_loop() {
  for (uint64_t n = 0; n < kScopes; n++) {
    const uint32_t scope = cprof_scope_begin("bench");
    __asm__ volatile("" ::: "memory");
    cprof_scope_end(scope);
  }
}

void empty_loop() {
  for (uint64_t n = 0; n < kScopes; n++) __asm__ volatile("" ::: "memory");
}

long page_faults() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

struct Figures {
  double floor, scope, call, disabled, empty, cold;
  long cold_faults;
};

Figures measure_scopes() {
  std::vector<double> floors, scopes, calls, off, empty;
  Figures figures{};
  for (int round = 0; round < kRounds; round++) {
    empty.push_back(cost_of(empty_loop));
    off.push_back(cost_of(scope_loop));
  }
  cprof_start("freq=0,overflow=overwrite");
  // Registered, then the first burst.
  CPROF_MARK("registered");
  const long faults = page_faults();
  figures.cold = cost_of([] {
    for (int n = 0; n < 20'000; n++) CPROF_SCOPE("cold");
  }, 20'000);
  figures.cold_faults = page_faults() - faults;
  for (int round = 0; round < kRounds; round++) {
    floors.push_back(cost_of(floor_loop));
    scopes.push_back(cost_of(scope_loop));
    calls.push_back(cost_of(call_loop));
  }
  cprof_stop();
  figures.floor = median(floors);
  figures.scope = median(scopes);
  figures.call = median(calls);
  figures.disabled = median(off);
  figures.empty = median(empty);
  return figures;
}

// ---- the handler's walk, against glibc's backtrace() from the same depth ----

volatile sig_atomic_t sampled = 0;
double backtrace_ns = 0;

__attribute__((noinline)) void at_depth(int depth) {
  if (depth > 0) {
    at_depth(depth - 1);
    __asm__ volatile("" ::: "memory");
    return;
  }
  constexpr int kTimes = 2000;
  void* frames[64];
  int count = 0;
  backtrace_ns = cost_of([&] {
    for (int n = 0; n < kTimes; n++) count += backtrace(frames, 64);
  }, kTimes);
  const double deadline = cpu_ns() + 1e9;
  while (cpu_ns() < deadline) {
    for (int n = 0; n < 100'000; n++) __asm__ volatile("" ::: "memory");
  }
  sampled = count;
}

}  // namespace

int main(int argc, char** argv) {
  const Figures figures = measure_scopes();
  std::printf("{\"floor_ns\": %.2f, \"scope_ns\": %.2f, \"scope_ratio\": %.3f, \"call_ratio\": %.3f, \"cold_ratio\": %.3f, "
              "\"cold_faults\": %ld, \"disabled_over_empty_ns\": %.3f",
              figures.floor, figures.scope, figures.scope / figures.floor, figures.call / figures.floor,
              figures.cold / figures.scope, figures.cold_faults, figures.disabled - figures.empty);
  // The handler's own figures are in the written file's comments.
  const char* out = argc > 1 ? argv[1] : "bench_inproc.pb.gz";
  void* warm[4];
  backtrace(warm, 4);
  if (cprof_start((std::string("freq=4000,out=") + out).c_str()) != 0) std::fprintf(stderr, "%s\n", cprof_error());
  at_depth(20);
  if (cprof_stop() != 0) std::fprintf(stderr, "%s\n", cprof_error());
  std::printf(", \"backtrace_ns\": %.0f}\n", backtrace_ns);
}
