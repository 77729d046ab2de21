#include "format/json/json_number.h"

#include "base/ascii.h"
#include "format/words.h"

namespace cprof::format {
namespace {

constexpr unsigned __int128 kLimit = uint64_t{1} << 63;  // of the magnitude of a negative number

// -digits.digits as the digits and a power of ten.
struct Decimal {
  bool is_negative = false;
  std::string_view whole, fraction;
  int64_t exponent = 0;
};

std::string_view take_digits(std::string_view& text) {
  size_t size = 0;
  while (size < text.size() && is_digit(text[size])) ++size;
  auto digits = text.substr(0, size);
  text.remove_prefix(size);
  return digits;
}

// Exponents beyond this leave no digit, or leave 64 bits.
constexpr int64_t kMaxExponent = 1'000'000'000;

std::optional<int64_t> parse_exponent(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  int64_t value = 0;
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
    if (value < kMaxExponent) value = value * 10 + (c - '0');
  }
  return is_negative ? -value : value;
}

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal decimal;
  decimal.is_negative = text.starts_with('-');
  if (decimal.is_negative) text.remove_prefix(1);
  decimal.whole = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimal.fraction = take_digits(text);
  }
  if (decimal.whole.empty() && decimal.fraction.empty()) return std::nullopt;
  if (text.empty()) return decimal;
  if (text[0] != 'e' && text[0] != 'E') return std::nullopt;
  auto exponent = parse_exponent(text.substr(1));
  if (!exponent) return std::nullopt;
  decimal.exponent = *exponent;
  return decimal;
}

struct Scaled {
  unsigned __int128 magnitude = 0;
  bool is_rounded = false;
};

// The digits up to `shift` places behind the point; the next one rounds.
std::optional<Scaled> scale(const Decimal& decimal, int64_t shift) {
  const auto whole = static_cast<int64_t>(decimal.whole.size());
  const auto size = whole + static_cast<int64_t>(decimal.fraction.size());
  const int64_t kept = whole + shift;
  auto digit = [&](int64_t i) {
    const char c = i < whole ? decimal.whole[static_cast<size_t>(i)] : decimal.fraction[static_cast<size_t>(i - whole)];
    return static_cast<unsigned>(c - '0');
  };
  Scaled result;
  for (int64_t i = 0; i < kept; ++i) {
    if (i >= size && result.magnitude == 0) break;
    result.magnitude = result.magnitude * 10 + (i < size ? digit(i) : 0);
    if (result.magnitude > kLimit) return std::nullopt;
  }
  for (int64_t i = kept < 0 ? 0 : kept; i < size; ++i) result.is_rounded |= digit(i) != 0;
  if (kept >= 0 && kept < size && digit(kept) >= 5) ++result.magnitude;
  return result;
}

std::optional<int64_t> signed_value(unsigned __int128 magnitude, bool is_negative) {
  if (magnitude > kLimit - !is_negative) return std::nullopt;
  const auto value = static_cast<uint64_t>(magnitude);
  return static_cast<int64_t>(is_negative ? ~value + 1 : value);
}

}  // namespace

std::optional<int64_t> scaled_number(std::string_view literal, unsigned decimals) {
  auto decimal = parse_decimal(literal);
  if (!decimal) return std::nullopt;
  auto scaled = scale(*decimal, decimal->exponent + decimals);
  return scaled ? signed_value(scaled->magnitude, decimal->is_negative) : std::nullopt;
}

std::optional<int64_t> whole_number(std::string_view literal) {
  int64_t value = 0;
  if (parse_number(literal, value)) return value;
  auto decimal = parse_decimal(literal);
  if (!decimal) return std::nullopt;
  auto scaled = scale(*decimal, decimal->exponent);
  if (!scaled || scaled->is_rounded) return std::nullopt;
  return signed_value(scaled->magnitude, decimal->is_negative);
}

std::optional<double> real_number(std::string_view literal) {
  double value = 0;
  return parse_number(literal, value) ? std::optional(value) : std::nullopt;
}

}  // namespace cprof::format
