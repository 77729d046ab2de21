// Words and numbers of a line of text. Used by the readers of text formats; pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace cprof::format {

inline constexpr std::string_view kBlanks = " \t\r";

inline std::string_view trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The first word, "" at the end; text becomes the rest, trimmed.
inline std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const auto word = text.substr(0, std::min(text.find_first_of(kBlanks), text.size()));
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return word;
}

// The number that text begins with, which is taken off it. form: what std::from_chars takes behind the value.
template <typename T, typename... Form>
bool take_number(std::string_view& text, T& value, Form... form) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, form...);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// All of text as one number.
template <typename T, typename... Form>
bool parse_number(std::string_view text, T& value, Form... form) {
  return take_number(text, value, form...) && text.empty();
}

}  // namespace cprof::format
