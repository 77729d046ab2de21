// Hash indexes over rows that live in a Profile's own vectors: the keys are not copied, only a slot per row is kept.
// Used by ProfileBuilder and by views that fold a Profile. Linear probing, power-of-two sizes, no removal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/number_map.h"

namespace cprof::profile {

using cprof::hash_join;

// What hashes of rows begin with: random bits of this run, since files choose what the rows hold.
inline uint64_t hash_seed() {
  static const uint64_t seed = TextHasher::seed();
  return seed;
}

// Rows found by a hash and an equality that the caller gives.
class RowIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  // The row that equal(row) accepts, or kNone.
  template <typename Equal>
  uint32_t find(uint64_t hash, Equal&& equal) const {
    if (slots_.empty()) return kNone;
    const auto tag = static_cast<uint32_t>(hash);
    size_t at = tag & (slots_.size() - 1);
    for (; slots_[at].row != kEmpty; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].tag == tag && equal(slots_[at].row)) return slots_[at].row;
    return kNone;
  }

  // The row that equal(row) accepts, else what make() returns: the number of a row that it added.
  template <typename Equal, typename Make>
  uint32_t find_or_add(uint64_t hash, Equal&& equal, Make&& make) {
    if ((count_ + 1) * 8 > slots_.size() * 5) grow();
    const auto tag = static_cast<uint32_t>(hash);
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

  Slot& probe(std::vector<Slot>& slots, uint32_t first, uint32_t second) const {
    const uint64_t key = uint64_t{first} << 32 | second;
    size_t at = hash_join(seed_, key) & (slots.size() - 1);
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

  uint64_t seed_ = hash_seed();
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

// The rows of a tree by (parent, key), where a row comes behind its parent. A row that was added right behind its parent
// is found there and takes no slot: so the tail of a new path, most rows of every import, costs no look-up and no memory.
class ChildIndex {
 public:
  // parent: kRoot for none. rows: how many there are. is_child(row): has that parent and key. make(): adds one at the end.
  static constexpr uint32_t kRoot = 0xffffffff;

  template <typename IsChild, typename Make>
  uint32_t find_or_add(uint32_t parent, uint32_t key, size_t rows, IsChild&& is_child, Make&& make) {
    const uint32_t behind = parent + 1;  // of kRoot: the first row
    if (behind == rows) return make();
    if (is_child(behind)) return behind;
    return pairs_.find_or_add(parent, key, make);
  }

 private:
  PairIndex pairs_;
};

}  // namespace cprof::profile
