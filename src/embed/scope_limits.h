// How long scopes of a name may last: what CPROF_SCOPE_TRIGGER and cprof_limit_scope() have told. Any thread adds, the
// collector reads; no lock, so that no fork can leave one held. Nothing is ever taken out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace cprof::embed {

class ScopeLimits {
 public:
  static constexpr uint32_t kMost = 64;
  static constexpr uint64_t kNone = UINT64_MAX;

  // Of two limits for one name the shorter holds. False: there are kMost other names.
  bool add(uint32_t name, uint64_t longest_ns);
  uint64_t of(uint32_t name) const;
  bool empty() const { return !limits_[0].name.load(std::memory_order_relaxed); }

 private:
  struct Limit {
    std::atomic<uint32_t> name{0};
    std::atomic<uint64_t> longest_ns{kNone};
  };
  std::array<Limit, kMost> limits_{};  // filled from the front
};

}  // namespace cprof::embed
