// Code points as UTF-8, and UTF-16 on the way to them. Used wherever text of unknown origin is read or written; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cprof {

inline constexpr uint32_t kReplacementCharacter = 0xfffd;
inline constexpr std::string_view kReplacementText = "\xef\xbf\xbd";  // the same in UTF-8

struct CodePoint {
  uint32_t value = 0;
  size_t bytes = 0;  // 0: text does not begin with a code point (overlong, a surrogate, beyond U+10FFFF, cut)
};
// The one that a text begins with; the text must not be empty.
CodePoint first_code_point(std::string_view text);

// The code point must be one that UTF-8 has.
void append_utf8(std::string& out, uint32_t code_point);

// The halves that UTF-16 writes for a code point beyond U+FFFF.
constexpr bool is_high_surrogate(uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
constexpr bool is_low_surrogate(uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }
constexpr uint32_t join_surrogates(uint32_t high, uint32_t low) { return 0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)); }

}  // namespace cprof
