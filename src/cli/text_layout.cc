#include "cli/text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/digit_groups.h"
#include "base/utf8.h"

namespace cprof::cli {
namespace {

// The printable code point at the front of text; no bytes when there is none.
CodePoint printable_code_point(std::string_view text) {
  const CodePoint found = first_code_point(text);
  const uint32_t code = found.value;
  const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
                          (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
                          code == 0xfeff;  // C0, C1, zero width, direction overrides
  return is_control ? CodePoint{} : found;
}

// Unicode's East Asian Width W and F, and pictures, in rough blocks; first and last of each.
constexpr std::pair<uint32_t, uint32_t> kWide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
                                                   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
                                                   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
constexpr std::pair<uint32_t, uint32_t> kCombining[] = {{0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20ff},
                                                        {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

bool is_in(std::span<const std::pair<uint32_t, uint32_t>> ranges, uint32_t code) {
  return std::ranges::any_of(ranges, [code](const auto& range) { return code >= range.first && code <= range.second; });
}

struct Character {
  size_t bytes, columns;
};

// Of text that may not be well-formed: then a byte is a character.
Character character_at(std::string_view text, size_t at) {
  const auto [code, bytes] = printable_code_point(text.substr(at));
  if (bytes < 2) return {1, 1};
  return {bytes, is_in(kWide, code) ? size_t{2} : is_in(kCombining, code) ? size_t{0} : size_t{1}};
}

struct Scale {
  double from;  // values of at least this
  double divisor;
  std::string_view suffix;
};

constexpr Scale kTimes[] = {{1e9, 1e9, " s"}, {1e6, 1e6, " ms"}, {1e3, 1e3, " µs"}, {0, 1, " ns"}};
constexpr Scale kBytes[] = {{1e9, 1e9, " GB"}, {1e6, 1e6, " MB"}, {1e3, 1e3, " kB"}, {0, 1, " B"}};

const Scale& scale_for(double value, std::span<const Scale> scales) {
  return *std::ranges::find_if(scales, [&](const Scale& s) { return std::abs(value) >= s.from || s.from == 0; });
}

// Three significant digits where that needs decimals.
std::string scaled(double value, std::span<const Scale> scales) {
  const Scale& scale = scale_for(value, scales);
  const double shown = value / scale.divisor;
  if (scale.from == 0) return fmt::format("{:.0f}{}", shown, scale.suffix);
  const double size = std::abs(shown);
  return fmt::format("{:.{}f}{}", shown, size < 9.995 ? 2 : size < 99.95 ? 1 : 0, scale.suffix);
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  for (size_t at = 0; at < text.size(); at += character_at(text, at).bytes) columns += character_at(text, at).columns;
  return columns;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = printable_code_point(text).bytes;
    if (length == 0) {
      out += '?';
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string shortened(std::string_view text, size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns < 3) return std::string(columns, '.');
  const size_t head = columns / 2, tail = columns - head - 1;
  size_t head_end = 0, head_columns = 0;
  for (; head_end < text.size(); head_end += character_at(text, head_end).bytes) {
    head_columns += character_at(text, head_end).columns;
    if (head_columns > head) break;
  }
  size_t tail_from = 0;
  for (size_t left = columns_of(text); left > tail; tail_from += character_at(text, tail_from).bytes)
    left -= character_at(text, tail_from).columns;
  return fmt::format("{}…{}", text.substr(0, head_end), text.substr(tail_from));
}

std::string padded(std::string_view text, size_t columns) {
  std::string out(text);
  const size_t width = columns_of(text);
  if (width < columns) out.append(columns - width, ' ');
  return out;
}

std::string right_aligned(std::string_view text, size_t columns) {
  const size_t width = columns_of(text);
  return std::string(width < columns ? columns - width : 0, ' ') + std::string(text);
}

std::string percent(double share) {
  std::string text = fmt::format("{:.1f} %", 100 * share);
  return text == "-0.0 %" ? "0.0 %" : text;
}

std::string duration_text(double nanoseconds) { return scaled(nanoseconds, kTimes); }
std::string bytes_text(double bytes) { return scaled(bytes, kBytes); }

std::string paragraph(std::string_view label, std::string_view text, size_t columns) {
  std::string out(label);
  const size_t indent = columns_of(label);
  size_t at = indent;
  bool is_first = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const size_t width = columns_of(word);
    if (!is_first && at + 1 + width > columns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
      is_first = true;
    }
    if (!is_first) out += ' ';
    out += word;
    at += width + (is_first ? 0 : 1);
    is_first = false;
  }
  return out + '\n';
}

ValueScale::ValueScale(int64_t largest, std::string_view unit) {
  const bool is_time = unit == "nanoseconds";
  if (!is_time && unit != "bytes") return;
  const Scale& scale = scale_for(static_cast<double>(largest), is_time ? std::span(kTimes) : std::span(kBytes));
  divisor_ = scale.divisor;
  suffix_ = scale.suffix;
  decimals_ = divisor_ > 1 ? 2 : 0;
}

std::string ValueScale::text(int64_t value) const {
  if (divisor_ == 1) return grouped(value) + suffix_;
  return fmt::format("{:.{}f}{}", static_cast<double>(value) / divisor_, decimals_, suffix_);
}

}  // namespace cprof::cli
