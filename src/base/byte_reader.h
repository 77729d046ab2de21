// Bounded reads from bytes in memory, for every binary format. A read past the end gives 0 and makes ok() false for
// good, so a parser checks once after a group of reads. Little-endian unless told otherwise.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace cprof {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes, bool swap = false) : bytes_(bytes), swap_(swap) {}

  bool ok() const { return ok_; }
  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  bool at_end() const { return remaining() == 0; }
  void fail() { ok_ = false, position_ = bytes_.size(); }

  void seek(uint64_t position) {
    if (position > bytes_.size()) return fail();
    position_ = static_cast<size_t>(position);
  }
  void skip(uint64_t count) {
    if (count > remaining()) return fail();
    position_ += static_cast<size_t>(count);
  }

  template <typename T>
  T read() {
    static_assert(std::is_integral_v<T>);
    if (remaining() < sizeof(T)) {
      fail();
      return 0;
    }
    T value;
    memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return swap_ ? byteswap(value) : value;
  }
  uint8_t u8() { return read<uint8_t>(); }
  uint16_t u16() { return read<uint16_t>(); }
  uint32_t u32() { return read<uint32_t>(); }
  uint64_t u64() { return read<uint64_t>(); }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_end() || shift > 63) {
        fail();
        return 0;
      }
      uint8_t byte = u8();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
  }
  int64_t sleb() {
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
      if (at_end() || shift > 63) {
        fail();
        return 0;
      }
      byte = u8();
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40)) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }

  std::span<const std::byte> bytes(uint64_t count) {
    if (count > remaining()) {
      fail();
      return {};
    }
    auto result = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return result;
  }
  // Up to the next NUL, which is consumed; a missing NUL fails.
  std::string_view cstring() {
    const char* start = reinterpret_cast<const char*>(bytes_.data()) + position_;
    const void* end = remaining() ? memchr(start, 0, remaining()) : nullptr;
    if (!end) {
      fail();
      return {};
    }
    size_t length = static_cast<size_t>(static_cast<const char*>(end) - start);
    position_ += length + 1;
    return {start, length};
  }

 private:
  template <typename T>
  static T byteswap(T value) {
    if constexpr (sizeof(T) == 1) return value;
    if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(static_cast<uint16_t>(value)));
    if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(value)));
    if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(static_cast<uint64_t>(value)));
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool ok_ = true;
  bool swap_ = false;
};

}  // namespace cprof
