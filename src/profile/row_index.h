// Hash indexes over rows that live in a Profile's own vectors: the keys are not copied, only a slot per row is kept.
// Used by ProfileBuilder and by views that fold a Profile. Linear probing, power-of-two sizes, no removal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cprof::profile {

// Joins one more 64-bit value to a running hash.
constexpr uint64_t hash_join(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9fb21c651e98df25ull;
  return hash ^ (hash >> 32);
}

// Rows found by a hash and an equality that the caller gives.
class RowIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // The row that equal(row) accepts, or kNone.
  template <typename Equal>
  uint32_t find(uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return kNone;
    const auto tag = static_cast<uint32_t>(hash ^ (hash >> 32));
    size_t at = tag & (slots_.size() - 1);
    for (; slots_[at].row != kEmpty; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].tag == tag && equal(slots_[at].row)) return slots_[at].row;
    return kNone;
  }

  // The row that equal(row) accepts, else what make() returns: the number of a row that it added.
  template <typename Equal, typename Make>
  uint32_t find_or_add(uint64_t hash, Equal&& equal, Make&& make) {
    if ((count_ + 1) * 8 > slots_.size() * 5) grow();
    const auto tag = static_cast<uint32_t>(hash ^ (hash >> 32));
    size_t at = tag & (slots_.size() - 1);
    for (; slots_[at].row != kEmpty; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].tag == tag && equal(slots_[at].row)) return slots_[at].row;
    const uint32_t row = make();
    slots_[at] = {tag, row};
    ++count_;
    return row;
  }

 private:
  static constexpr uint32_t kEmpty = kNone;
  struct Slot {
    uint32_t tag = 0;
    uint32_t row = kEmpty;
  };

  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : slots_.size() * 2);
    const size_t mask = larger.size() - 1;
    for (const Slot& slot : slots_) {
      if (slot.row == kEmpty) continue;
      size_t at = slot.tag & mask;
      while (larger[at].row != kEmpty) at = (at + 1) & mask;
      larger[at] = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

// Rows found by a pair of 32-bit numbers that the slot itself holds: (parent, location) of call sites, where the
// detour through the row would double the cache misses of the hottest loop of every import.
class PairIndex {
 public:
  template <typename Make>
  uint32_t find_or_add(uint32_t first, uint32_t second, Make&& make) {
    if ((count_ + 1) * 8 > slots_.size() * 5) grow();
    Slot& slot = probe(slots_, first, second);
    if (slot.row == kEmpty) {
      slot = {first, second, make()};
      ++count_;
    }
    return slot.row;
  }

 private:
  static constexpr uint32_t kEmpty = 0xffffffff;
  struct Slot {
    uint32_t first = 0, second = 0;
    uint32_t row = kEmpty;
  };

  static Slot& probe(std::vector<Slot>& slots, uint32_t first, uint32_t second) {
    const uint64_t key = uint64_t{first} << 32 | second;
    size_t at = hash_join(0x2545f4914f6cdd1dull, key) & (slots.size() - 1);
    while (slots[at].row != kEmpty && (slots[at].first != first || slots[at].second != second))
      at = (at + 1) & (slots.size() - 1);
    return slots[at];
  }

  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 1024 : slots_.size() * 2);
    for (const Slot& slot : slots_)
      if (slot.row != kEmpty) probe(larger, slot.first, slot.second) = slot;
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace cprof::profile
