// The program's code as the signal handler knows it: which file's unwind rows hold where. Made by embed/module_tracker,
// published by one atomic pointer and never changed after; a replaced list is freed when every handler that could have
// seen it has returned. No libc.
#pragma once

#include <atomic>
#include <cstdint>

#include "unwind/core/unwind_rows.h"

namespace cprof::inproc {

struct Module {
  uint64_t start = 0, end = 0;      // one executable mapping
  uint64_t bias = 0;                // address in memory - address in the file
  const cp_table* table = nullptr;  // null: code without unwind information, made at run time for instance
};

struct ModuleList {
  const Module* modules = nullptr;  // sorted, disjoint
  uint32_t count = 0;
  uint32_t generation = 0;

  const Module* find(uint64_t pc) const {
    uint32_t low = 0, high = count;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (modules[middle].end <= pc)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count && modules[low].start <= pc ? &modules[low] : nullptr;
  }
};

}  // namespace cprof::inproc
