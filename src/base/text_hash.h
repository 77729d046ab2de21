// A keyed hash of texts, 128 bits wide: fast on short ones, and keyed by random bits of this run, so that nobody can prepare
// texts that fall together. Wide enough to stand for the text itself in a table. For tables in memory only: it differs from
// run to run, so nothing may come out in its order.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace cprof {

struct TextHash {
  uint64_t a = 0, b = 0;
  bool operator==(const TextHash&) const = default;
};

class TextHasher {
 public:
  TextHasher() : seed_(run_seed()) {}

  TextHash operator()(std::string_view text) const {
    uint64_t a = seed_.a ^ text.size(), b = seed_.b + text.size();
    const char* at = text.data();
    size_t left = text.size();
    for (; left >= 16; at += 16, left -= 16) mix(a, b, load64(at), load64(at + 8));
    if (left >= 8) mix(a, b, load64(at), load64(at + left - 8));
    else mix(a, b, load_tail(at, left), left);
    mix(a, b, b, a);
    return {a, b};
  }
  // Random bits of this run, for other keyed hashes.
  static uint64_t seed() { return run_seed().a; }
  // Of a text that follows another.
  TextHash join(TextHash before, TextHash then) const {
    mix(before.a, before.b, then.a, then.b);
    return before;
  }

 private:
  static TextHash run_seed();

  static uint64_t load64(const char* at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
  }
  static uint64_t load_tail(const char* at, size_t size) {
    if (size >= 4) {
      uint32_t low, high;
      memcpy(&low, at, sizeof low);
      memcpy(&high, at + size - 4, sizeof high);
      return uint64_t{high} << 32 | low;
    }
    if (size == 0) return 0;
    auto byte = [at](size_t i) { return uint64_t{static_cast<unsigned char>(at[i])}; };
    return byte(0) << 16 | byte(size / 2) << 8 | byte(size - 1);  // each of up to three bytes
  }
  static uint64_t fold(uint64_t x, uint64_t y) {
    auto product = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static void mix(uint64_t& a, uint64_t& b, uint64_t x, uint64_t y) {
    a = fold(a ^ x ^ 0x9e3779b97f4a7c15ull, y ^ 0xd6e8feb86659fd93ull) + b;
    b = fold(b ^ y ^ 0xa0761d6478bd642full, x ^ 0xe7037ed1a0b428dbull) ^ a;
  }

  TextHash seed_;
};

}  // namespace cprof
