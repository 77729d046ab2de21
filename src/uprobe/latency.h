// What is known of a function's calls: sums, and how its latencies are spread. The buckets are the kernel's
// (uprobe_abi.h); what is read off them is at most 3.2 % off. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "collect/bpf/uprobe_abi.h"

namespace cprof::uprobe {

class LatencyHistogram {
 public:
  std::array<uint64_t, UPROBE_BUCKETS> buckets{};

  static uint64_t lowest_of(uint32_t bucket);  // of the values in it
  static uint64_t width_of(uint32_t bucket);
  uint64_t count() const;
  // The value that this share of all does not exceed. 0 when there are none.
  uint64_t quantile(double share) const;

  struct Power {
    uint64_t from_ns = 0, to_ns = 0;  // [from, to)
    uint64_t count = 0;
  };
  // One row a power of two, from the first that is not empty to the last.
  std::vector<Power> by_powers() const;
};

struct FunctionSums {
  uint64_t calls = 0, finished = 0, unwound = 0, untimed = 0;
  uint64_t total_ns = 0, raw_ns = 0, least_ns = 0, most_ns = 0;  // of the finished
  LatencyHistogram histogram;

  uint64_t mean_ns() const { return finished ? (total_ns + finished / 2) / finished : 0; }
  // Neither ended nor left: still running, or their thread has ended in them.
  uint64_t unfinished() const;
  // Within what is known for sure.
  uint64_t quantile(double share) const;
};

FunctionSums sums_of(const uprobe_row& row);

}  // namespace cprof::uprobe
