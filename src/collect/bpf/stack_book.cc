#include "collect/bpf/stack_book.h"

#include <algorithm>

namespace cprof::collect {

StackBook::Stack* StackBook::find(uint64_t id) {
  std::vector<Stack>& place = place_of(id);
  auto it = std::ranges::find(place, id, &Stack::id);
  return it == place.end() ? nullptr : &*it;
}

StackBook::Stack& StackBook::keep(uint64_t id, uint64_t written_ns, std::span<const std::byte> record) {
  if (Stack* known = find(id)) {
    known->written_ns = std::max(known->written_ns, written_ns);
    if (!known->is_told || known->told_after == repeats_) return *known;
    known->is_told = false;
    known->record.assign(record.begin(), record.end());
    return *known;
  }
  std::vector<Stack>& place = place_of(id);
  forget_replaced(place);
  size_++;
  return place.emplace_back(Stack{id, written_ns, false, 0, {record.begin(), record.end()}});
}

void StackBook::tell(Stack& stack) {
  stack.is_told = true;
  stack.told_after = repeats_;
  stack.record = std::vector<std::byte>();
}

// Of those whose writing is long delivered the latest holds the place; what was written well before it cannot have been
// named since without being written again.
void StackBook::forget_replaced(std::vector<Stack>& place) {
  uint64_t latest = 0;
  for (const Stack& stack : place)
    if (stack.written_ns + kSlackNs < delivered_ns_) latest = std::max(latest, stack.written_ns);
  size_ -= std::erase_if(place, [&](const Stack& stack) { return stack.written_ns + kSlackNs < latest; });
}

// Each repeat whose earlier events are delivered takes what was not written after it. A program that had looked just before
// the place was cleared may have named its stack just afterwards, and filled the place again.
void StackBook::repeat(uint64_t now_ns) {
  repeats_++;
  repeats_ns_.push_back(now_ns);
  auto is_delivered = [&](uint64_t repeat_ns) { return repeat_ns + kSlackNs < delivered_ns_; };
  auto first_open = std::ranges::find_if_not(repeats_ns_, is_delivered);
  if (first_open == repeats_ns_.begin()) return;
  const uint64_t cleared_ns = *std::prev(first_open);
  repeats_ns_.erase(repeats_ns_.begin(), first_open);
  for (std::vector<Stack>& place : places_)
    size_ -= std::erase_if(place, [&](const Stack& stack) { return stack.written_ns + kSlackNs < cleared_ns; });
}

}  // namespace cprof::collect
