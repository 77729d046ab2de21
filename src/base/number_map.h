// Maps whose keys are numbers that a file chose: ids, addresses, process numbers. The hash is keyed by random bits of this
// run, so that nobody can prepare numbers that fall together and make each look-up a walk. Iteration order differs from run
// to run: nothing may come out in it.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text_hash.h"

namespace cprof {

// Joins one more value to a running hash: the two halves of a 128-bit product, so that every bit reaches every other.
constexpr uint64_t hash_join(uint64_t hash, uint64_t value) {
  const auto product = static_cast<unsigned __int128>(hash ^ value) * 0x9fb21c651e98df25ull;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

struct NumberHash {
  uint64_t seed = TextHasher::seed();

  size_t operator()(uint64_t number) const { return hash_join(seed, number); }
  size_t operator()(const std::pair<uint64_t, uint64_t>& numbers) const {
    return hash_join(hash_join(seed, numbers.first), numbers.second);
  }
};

template <typename Key, typename Value>
using NumberMap = std::unordered_map<Key, Value, NumberHash>;
template <typename Key>
using NumberSet = std::unordered_set<Key, NumberHash>;

}  // namespace cprof
