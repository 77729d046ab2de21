// A fast 64-bit hash of bytes, to name and check cache files. Not against an adversary: the files lie in a directory
// that only its user can write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cprof::unwind {

class ContentHash {
 public:
  void add(uint64_t word) { state_ = mix(state_ ^ word, kSecond); }
  void add(std::span<const std::byte> bytes) {
    add(bytes.size());
    while (bytes.size() >= 8) {
      uint64_t word;
      memcpy(&word, bytes.data(), 8);
      add(word);
      bytes = bytes.subspan(8);
    }
    uint64_t tail = 0;
    if (!bytes.empty()) memcpy(&tail, bytes.data(), bytes.size());
    add(tail);
  }
  uint64_t value() const { return mix(state_, kFirst); }

 private:
  static constexpr uint64_t kFirst = 0x9e3779b97f4a7c15, kSecond = 0xd6e8feb86659fd93;
  static uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = static_cast<unsigned __int128>(a ^ kFirst) * (b | 1);
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  uint64_t state_ = kFirst;
};

}  // namespace cprof::unwind
