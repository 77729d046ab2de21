// The chains of the stacks that samples name by an id, so that a capture can hold them where other readers look: in each
// sample. Private to the raw writer. Bounded: beyond the limit all are forgotten, and samples until the next definition
// have no chain for others; our own replay takes stacks from their definitions and loses nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "base/number_map.h"
#include "event/event.h"

namespace cprof::format::perfdata {

class StackChains {
 public:
  explicit StackChains(size_t max_words = size_t{8} << 20) : max_words_(max_words) {}

  void define(const event::StackDef& def);
  void forget(int32_t pid);  // it belongs to another process now
  // The sample with its chains, when they are known.
  event::Sample with_chains(const event::Sample& sample) const;

 private:
  struct Chains {
    std::vector<uint64_t> words;
    size_t kernel_count = 0;
  };

  size_t max_words_, words_ = 0;
  NumberMap<int32_t, NumberMap<uint64_t, Chains>> by_pid_;
};

}  // namespace cprof::format::perfdata
