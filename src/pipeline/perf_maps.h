// The perf maps of processes that live: names that a JIT compiler gives to its code, in a file that grows as it compiles.
// Found inside the target's root and by its number in its own pid namespace. Read again when it has grown and an address
// is not in it, once a round. Used by the namers of live runs, on their thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "symbolize/symbolizer.h"

namespace cprof::pipeline {

class PerfMaps {
 public:
  // From now on files may be looked at again.
  void begin_round() { round_++; }
  // Views live until the next call for the same process.
  std::optional<symbolize::PerfMap::Entry> find(int32_t pid, uint64_t address);

 private:
  struct Known {
    std::unique_ptr<symbolize::PerfMap> map;  // null: none
    uint64_t bytes = 0, round = 0;
  };
  std::map<int32_t, Known> maps_;
  uint64_t round_ = 1;
};

}  // namespace cprof::pipeline
