// What each thread did in one interval: the differences of two readings of a ThreadSource, CPU time split into user and
// kernel. Rows may be summed up by process. Pure. Used by the verb, on its thread.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpustat/thread_source.h"

namespace cprof::cpustat {

struct Row {
  int32_t pid = 0, tid = 0;  // of a process: tid is pid
  std::string comm;
  bool has_ended = false;
  uint32_t threads = 1;
  uint64_t user_ns = 0, kernel_ns = 0, runnable_ns = 0;
  WaitTimes waits_ns{};
  uint64_t voluntary = 0, involuntary = 0, migrations = 0, wakeups = 0;

  uint64_t cpu_ns() const { return user_ns + kernel_ns; }
  uint64_t off_ns() const;  // all waits, runnable time not among them
  uint64_t wait_ns(profile::WaitClass wait_class) const { return waits_ns[static_cast<size_t>(wait_class)]; }
};

struct Interval {
  uint64_t start_ns = 0, end_ns = 0;  // CLOCK_MONOTONIC
  std::vector<Row> rows;              // by pid, then tid
  uint64_t length_ns() const { return end_ns - start_ns; }
};

class Intervals {
 public:
  // What was before it does not count.
  void begin(uint64_t time_ns, const std::vector<ThreadSums>& threads);
  // From the reading before to this one.
  Interval next(uint64_t time_ns, const std::vector<ThreadSums>& threads);

 private:
  struct Known {
    ThreadSums sums;
    double user_share = -1;  // of CPU time, when it was last told; less than 0: never
    uint64_t round = 0;
  };
  Row row_of(const ThreadSums& now, Known& known);

  std::unordered_map<int32_t, Known> known_;  // by tid
  uint64_t time_ns_ = 0, round_ = 0;
};

// One row a process, named after its main thread where that is among the rows.
std::vector<Row> by_process(const std::vector<Row>& threads);
// Adds up rows of the same thread (or process) over several intervals.
class Totals {
 public:
  void add(const Interval& interval);
  std::vector<Row> rows() const;  // by pid, then tid
  uint64_t length_ns() const { return length_ns_; }

 private:
  std::unordered_map<int64_t, Row> rows_;
  uint64_t length_ns_ = 0;
};

}  // namespace cprof::cpustat
