#include "cli/text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace cprof::cli {
namespace {

// Length in bytes of the well-formed, printable code point at the front of text; 0 when there is none.
size_t code_point_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  uint32_t code = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool is_overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool is_control = code < 0xa0 || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
                          (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;  // C1, zero width, direction overrides
  const bool is_no_character = code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff);
  return is_overlong || is_control || is_no_character ? 0 : length;
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
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = code_point_length(text);
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
  auto step = [&](size_t at, size_t count) {
    for (; count > 0; --count) {
      ++at;
      while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
    }
    return at;
  };
  const size_t tail_from = step(0, columns_of(text) - tail);
  return fmt::format("{}…{}", text.substr(0, step(0, head)), text.substr(tail_from));
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

std::string grouped(int64_t number) {
  std::string digits = fmt::format("{}", number);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
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
