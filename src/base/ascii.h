// Classes of characters that no locale changes.
#pragma once

namespace cprof {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// -1 for what is none.
constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace cprof
