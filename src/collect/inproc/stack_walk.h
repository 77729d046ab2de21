// Walks one thread's own stack inside its signal handler, by the same rows and steps as every other unwinder here (unwind/core).
// Never allocates, locks or calls libc; every loop is bounded. The caller: handler.cc, and tests with stacks of their own.
#pragma once

#include <cstdint>

#include "collect/inproc/module_list.h"
#include "collect/inproc/sample_ring.h"
#include "collect/inproc/stack_reader.h"
#include "unwind/core/unwind_rows.h"

namespace cprof::inproc {

// Registers of the interrupted instruction by DWARF number; all are known.
struct Registers {
  uint64_t value[CP_MAX_REGISTERS];
};

// Where the frames go, leaf first.
struct FrameSink {
  SampleRing* ring = nullptr;
  uint32_t limit = 0;   // frames that fit
  uint32_t count = 0;
  void put(uint64_t pc) { ring->put(SampleHeader::kWords + count++, pc); }
};

// What the rows said of a pc the last time: a walk mostly meets the callers of the one before. Of one module list at a time.
struct RuleCache {
  static constexpr uint32_t kBits = 9;
  struct Entry {
    uint64_t pc = 0;   // 0: empty
    cp_rule rule{};
  };
  uint32_t generation = 0;
  Entry entries[1u << kBits];

  Entry& of(uint64_t pc) { return entries[pc * 0x9e3779b97f4a7c15 >> (64 - kBits)]; }
  void begin(uint32_t list_generation) {
    if (generation == list_generation) return;
    generation = list_generation;
    for (Entry& entry : entries) entry.pc = 0;
  }
};

struct WalkInput {
  const ModuleList* modules = nullptr;
  const cp_machine* machine = nullptr;
  RuleCache* cache = nullptr;
  StackRange base_of_fiber{};   // a stack ends where it leaves this one, when it has begun there
};

// registers is overwritten on the way through signal frames.
WalkEnd walk_stack(const WalkInput& input, Registers& registers, StackReader& reader, FrameSink& sink);

}  // namespace cprof::inproc
