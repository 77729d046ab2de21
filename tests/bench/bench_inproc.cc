// What a scope costs, against the floor measured in the same run: two readings of the counter and one record of 24
// bytes.
//   bench_inproc scopes THREADS ROUNDS   one JSON object: medians over rounds that take turns, means of the threads
//   bench_inproc loop empty|disabled N   N times nothing, or a scope while no session runs: for counting instructions
#include <cprof/cprof.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kScopes = 500'000, kBurst = 20'000;
constexpr uint64_t kFloorRecords = 64 * 1024;

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct FloorRecord {
  uint64_t start, end, word;
};
thread_local FloorRecord* floor_ring;
thread_local uint64_t floor_head = 0;

uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return cprof_ticks_();
#endif
}

void floor_loop(uint64_t times) {
  for (uint64_t n = 0; n < times; n++) {
    const uint64_t start = ticks();
    __asm__ volatile("" ::: "memory");
    FloorRecord& record = floor_ring[floor_head & (kFloorRecords - 1)];
    record = {start, ticks(), n};
    __atomic_store_n(&floor_head, floor_head + 1, __ATOMIC_RELEASE);
  }
}

void scope_loop(uint64_t times) {
  for (uint64_t n = 0; n < times; n++) {
    CPROF_SCOPE("bench");
    __asm__ volatile("" ::: "memory");
  }
}

void call_loop(uint64_t times) {
  for (uint64_t n = 0; n < times; n++) {
    const uint32_t scope = cprof_scope_begin("bench");
    __asm__ volatile("" ::: "memory");
    cprof_scope_end(scope);
  }
}

void empty_loop(uint64_t times) {
  for (uint64_t n = 0; n < times; n++) __asm__ volatile("" ::: "memory");
}

using Loop = void (*)(uint64_t times);

double cost_of(Loop loop, uint64_t times) {
  const double before = cpu_ns();
  loop(times);
  return (cpu_ns() - before) / static_cast<double>(times);
}

long page_faults() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

struct Figures {
  double floor = 0, scope = 0, call = 0, disabled = 0, empty = 0, cold = 0;
  long cold_faults = 0;
};

struct Series {
  std::vector<double> values;
  void add(Loop loop) { values.push_back(cost_of(loop, kScopes)); }
};

// One thread's part; all threads are in the same stage at the same time.
Figures measure(int rounds, pthread_barrier_t& together, bool is_first) {
  std::vector<FloorRecord> records(kFloorRecords);
  floor_ring = records.data();
  Series floors, scopes, calls, off, empty;
  Figures figures;
  for (int round = 0; round < rounds; round++) {
    empty.add(empty_loop);
    off.add(scope_loop);
  }
  pthread_barrier_wait(&together);
  if (is_first && cprof_start("freq=0,overflow=overwrite") != 0) std::fprintf(stderr, "%s\n", cprof_error());
  pthread_barrier_wait(&together);
  CPROF_MARK("registered");  // then the first burst
  const long faults = page_faults();
  figures.cold = cost_of(scope_loop, kBurst);
  figures.cold_faults = page_faults() - faults;
  for (int round = 0; round < rounds; round++) {
    pthread_barrier_wait(&together);
    floors.add(floor_loop);
    scopes.add(scope_loop);
    calls.add(call_loop);
  }
  pthread_barrier_wait(&together);
  if (is_first) cprof_stop();
  figures.floor = median(floors.values);
  figures.scope = median(scopes.values);
  figures.call = median(calls.values);
  figures.disabled = median(off.values);
  figures.empty = median(empty.values);
  return figures;
}

int print_scopes(int count, int rounds) {
  pthread_barrier_t together;
  pthread_barrier_init(&together, nullptr, static_cast<unsigned>(count));
  std::vector<Figures> each(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (size_t n = 1; n < each.size(); n++) threads.emplace_back([&, n] { each[n] = measure(rounds, together, false); });
  each[0] = measure(rounds, together, true);
  for (std::thread& thread : threads) thread.join();
  const auto mean = [&](double Figures::* value) {
    double sum = 0;
    for (const Figures& figures : each) sum += figures.*value;
    return sum / static_cast<double>(each.size());
  };
  long faults = 0;
  for (const Figures& figures : each) faults += figures.cold_faults;
  std::printf(
      "{\"floor_ns\": %.3f, \"scope_ns\": %.3f, \"call_ns\": %.3f, \"cold_ns\": %.3f, \"cold_faults\": %ld, "
      "\"disabled_ns\": %.3f, \"empty_ns\": %.3f}\n",
      mean(&Figures::floor), mean(&Figures::scope), mean(&Figures::call), mean(&Figures::cold), faults,
      mean(&Figures::disabled), mean(&Figures::empty));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "scopes") == 0) return print_scopes(std::atoi(argv[2]), std::atoi(argv[3]));
  if (argc == 4 && std::strcmp(argv[1], "loop") == 0) {
    (std::strcmp(argv[2], "disabled") == 0 ? scope_loop : empty_loop)(std::strtoull(argv[3], nullptr, 10));
    return 0;
  }
  std::fprintf(stderr, "bench_inproc scopes THREADS ROUNDS | loop empty|disabled N\n");
  return 2;
}
