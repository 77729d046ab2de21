#include "collect/bpf/stack_book.h"

#include <algorithm>

namespace cprof::collect {

StackBook::Stack* StackBook::find(uint64_t id) {
  std::vector<Stack>& place = place_of(id);
  auto it = std::ranges::find(place, id, &Stack::id);
  return it == place.end() ? nullptr : &*it;
}

void StackBook::keep(uint64_t id, uint64_t written_ns, std::span<const std::byte> record) {
  if (Stack* known = find(id)) {
    known->written_ns = std::max(known->written_ns, written_ns);
    return;
  }
  std::vector<Stack>& place = place_of(id);
  forget_replaced(place);
  place.push_back({id, written_ns, false, {record.begin(), record.end()}});
  size_++;
}

void StackBook::tell(Stack& stack) {
  stack.is_told = true;
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

}  // namespace cprof::collect
