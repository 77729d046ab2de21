// The stacks that the BPF programs have written, by id, as long as an event may still name them: a program writes a stack
// once and then names it for as long as its place in the array of ids is not taken by another (define_stack()) nor cleared
// (repeat()). Here each place keeps its ids, and forgets one when a later one of that place has surely taken over, or the
// place was cleared, and all events that may name the earlier one have been delivered. Used by BpfCollector, on its thread;
// never looks into a stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collect/bpf/sampler_abi.h"

namespace cprof::collect {

class StackBook {
 public:
  // Between the time on a program's record and the end of that program: what two CPUs wrote closer than this may be in
  // either order.
  static constexpr uint64_t kSlackNs = 1'000'000'000;

  StackBook() : places_(SAMPLER_SENT_SLOTS) {}

  struct Stack {
    uint64_t id = 0;
    uint64_t written_ns = 0;              // last
    bool is_told = false;
    uint64_t told_after = 0;              // so many repeats
    std::vector<std::byte> record;        // until it is told
  };

  // A program has written this. What was told before the last repeat is to be told again. Valid as what find() gives.
  Stack& keep(uint64_t id, uint64_t written_ns, std::span<const std::byte> record);
  // Null: not written, or forgotten. Valid until the next keep() or repeat().
  Stack* find(uint64_t id);
  void tell(Stack& stack);
  // All that happened until then, and what named its stack, has been delivered.
  void delivered_until(uint64_t time_ns) { delivered_ns_ = time_ns; }
  // From now on the programs write all stacks again. Comes before their places are cleared.
  void repeat(uint64_t now_ns);
  size_t size() const { return size_; }

 private:
  std::vector<Stack>& place_of(uint64_t id) { return places_[id % SAMPLER_SENT_SLOTS]; }
  void forget_replaced(std::vector<Stack>& place);

  std::vector<std::vector<Stack>> places_;
  size_t size_ = 0;
  uint64_t delivered_ns_ = 0;
  uint64_t repeats_ = 0;
  std::vector<uint64_t> repeats_ns_;      // after which events may still be to be delivered
};

}  // namespace cprof::collect
