// From the tick counter to CLOCK_MONOTONIC: pairs of both, taken while a session runs, and lines between them. What CPUID says
// of the rate is not believed (some hypervisors say nonsense there), RDTSCP's processor number is never used.
#pragma once

#include <cstdint>
#include <vector>

namespace cprof::embed {

class TickClock {
 public:
  // Decides for the process whether the counter can be used at all: it must run at one rate whatever the CPU does.
  static void choose_source();
  // Takes a pair. To be called at the start, about ten times a second, and before the last to_ns().
  void calibrate();
  uint64_t to_ns(uint64_t ticks) const;
  uint64_t to_ticks(uint64_t ns) const;

 private:
  struct Pair {
    uint64_t ticks = 0, ns = 0;
  };
  static Pair take_pair();
  uint64_t convert(uint64_t value, uint64_t Pair::*from, uint64_t Pair::*into) const;
  void thin_out();

  std::vector<Pair> pairs_;
};

}  // namespace cprof::embed
