#include "embed/scope_limits.h"

namespace cprof::embed {

bool ScopeLimits::add(uint32_t name, uint64_t longest_ns) {
  for (Limit& limit : limits_) {
    uint32_t owner = 0;
    if (!limit.name.compare_exchange_strong(owner, name) && owner != name) continue;
    uint64_t before = limit.longest_ns.load(std::memory_order_relaxed);
    while (longest_ns < before &&
           !limit.longest_ns.compare_exchange_weak(before, longest_ns, std::memory_order_relaxed)) {
    }
    return true;
  }
  return false;
}

uint64_t ScopeLimits::of(uint32_t name) const {
  for (const Limit& limit : limits_) {
    const uint32_t owner = limit.name.load(std::memory_order_relaxed);
    if (owner == name) return limit.longest_ns.load(std::memory_order_relaxed);
    if (!owner) break;
  }
  return kNone;
}

}  // namespace cprof::embed
