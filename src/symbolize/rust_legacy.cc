#include <cctype>
#include <charconv>

#include "base/utf8.h"
#include "symbolize/rust_names.h"

namespace cprof::symbolize {
namespace {

constexpr size_t kHashLength = 17;  // 'h' and 16 hexadecimal digits

bool is_hash(std::string_view segment) {
  return segment.size() == kHashLength && segment[0] == 'h' &&
         segment.find_first_not_of("0123456789abcdef", 1) == segment.npos;
}

// "LT" -> "<", "u20" -> " "; false: not an escape.
bool append_escape(std::string& out, std::string_view escape) {
  static constexpr struct {
    std::string_view name, text;
  } kEscapes[] = {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"}, {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}};
  for (const auto& known : kEscapes) {
    if (escape == known.name) {
      out += known.text;
      return true;
    }
  }
  if (escape.size() < 2 || escape[0] != 'u') return false;
  uint32_t code_point = 0;
  auto [end, error] = std::from_chars(escape.data() + 1, escape.data() + escape.size(), code_point, 16);
  if (error != std::errc{} || end != escape.data() + escape.size() || code_point < 0x20) return false;
  return append_utf8(out, code_point);
}

void append_segment(std::string& out, std::string_view segment) {
  if (segment.starts_with("_$")) segment.remove_prefix(1);
  while (!segment.empty()) {
    size_t close = segment[0] == '$' ? segment.find('$', 1) : segment.npos;
    if (segment.starts_with("..")) {
      out += "::";
      segment.remove_prefix(2);
    } else if (close != segment.npos && append_escape(out, segment.substr(1, close - 1))) {
      segment.remove_prefix(close + 1);
    } else {
      out += segment[0];
      segment.remove_prefix(1);
    }
  }
}

}  // namespace

bool append_utf8(std::string& out, uint32_t c) {
  if (c > 0x10ffff || is_high_surrogate(c) || is_low_surrogate(c)) return false;
  cprof::append_utf8(out, c);
  return true;
}

std::optional<std::string> demangle_rust_legacy(std::string_view mangled) {
  if (!mangled.starts_with("_ZN")) return std::nullopt;
  std::string_view rest = mangled.substr(3), last;
  std::string out;
  size_t segments = 0;
  while (!rest.empty() && rest[0] != 'E') {
    size_t length = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
    size_t digits = static_cast<size_t>(end - rest.data());
    if (error != std::errc{} || length == 0 || length > rest.size() - digits) return std::nullopt;
    if (segments > 0) {
      if (segments > 1) out += "::";
      append_segment(out, last);
    }
    last = rest.substr(digits, length);
    rest.remove_prefix(digits + length);
    segments++;
  }
  if (rest.empty() || segments < 2 || !is_hash(last)) return std::nullopt;
  rest.remove_prefix(1);
  if (!rest.empty() && rest[0] != '.') return std::nullopt;
  if (!rest.starts_with(".llvm.")) out += rest;
  return out;
}

}  // namespace cprof::symbolize
