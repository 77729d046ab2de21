// What the signal handler's capture costs against glibc's backtrace(), from the same depth, warm, in turns. Linked with the library's
// parts, since a capture is nothing that the library exports. Prints one JSON object; only the ratio means something.
#include <execinfo.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include <cprof/cprof.h>

#include "collect/inproc/handler.h"

namespace {

constexpr int kRounds = 11, kTimes = 300;

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure() {
  using cprof::inproc::ThreadState;
  ThreadState* thread = ThreadState::of(cprof_thread_);
  std::vector<double> captures, backtraces;
  ucontext_t context;
  void* frames[64];
  int depth = backtrace(frames, 64);
  uint64_t words = 0;
  getcontext(&context);
  for (int round = 0; round < kRounds; round++) {
    double before = cpu_ns();
    for (int n = 0; n < kTimes; n++) cprof::inproc::take_sample(*thread, &context, 0);
    captures.push_back((cpu_ns() - before) / kTimes);
    words = thread->samples.available();
    thread->samples.consume(words);
    before = cpu_ns();
    for (int n = 0; n < kTimes; n++) depth += backtrace(frames, 64) * 0;
    backtraces.push_back((cpu_ns() - before) / kTimes);
  }
  std::printf("{\"frames\": %d, \"words_per_sample\": %.1f, \"capture_ns\": %.0f, \"backtrace_ns\": %.0f, \"ratio\": %.3f}\n", depth,
              static_cast<double>(words) / kTimes, median(captures), median(backtraces), median(captures) / median(backtraces));
}

__attribute__((noinline)) void at_depth(int depth) {
  if (depth > 0)
    at_depth(depth - 1);
  else
    measure();
  __asm__ volatile("" ::: "memory");
}

}  // namespace

int main() {
  if (cprof_start("freq=1") != 0) {
    std::fprintf(stderr, "%s\n", cprof_error());
    return 1;
  }
  at_depth(20);
  return cprof_stop() == 0 ? 0 : 1;
}
