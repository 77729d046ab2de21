// How many context switches there are, and so every how many of them may have a stack: the collector counts the records
// of each ring as it reads them, before anything else is done with them, so that a storm is met while the rings still
// have room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cprof::collect {

class SwitchRate {
 public:
  static constexpr uint64_t kMostPerSecond = 5000;  // stacks: more would cost more than they tell

  // A thread left the CPU of this ring. Times of one ring ascend.
  void note(size_t ring, uint64_t time_ns);
  // A power of two. Grows at once, shrinks after half a second of calm.
  uint64_t wanted_period() const { return period_; }

 private:
  struct Window {
    uint64_t since_ns = 0, switches = 0;
    uint64_t per_second = 0;  // of the window before
  };
  void end_window(Window& window, uint64_t time_ns);

  std::vector<Window> rings_;
  uint64_t period_ = 1;
  uint64_t calm_since_ns_ = 0;  // 0: not calm
};

}  // namespace cprof::collect
