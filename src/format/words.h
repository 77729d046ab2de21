// Words and numbers of a line of text. Used by the readers of text formats; pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

namespace cprof::format {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
constexpr bool is_blank(std::string_view text) { return std::ranges::all_of(text, [](char c) { return is_blank(c); }); }

// Where the first or last blank is; npos when there is none. Several times as fast as find_first_of.
constexpr size_t find_blank(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (is_blank(text[i])) return i;
  return text.npos;
}
constexpr size_t find_last_blank(std::string_view text) {
  for (size_t i = text.size(); i-- > 0;)
    if (is_blank(text[i])) return i;
  return text.npos;
}

constexpr std::string_view trim_front(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  return text;
}
constexpr std::string_view trim(std::string_view text) {
  text = trim_front(text);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// The first word, "" at the end; text becomes the rest, trimmed.
inline std::string_view take_word(std::string_view& text) {
  text = trim(text);
  const auto word = text.substr(0, find_blank(text));
  text = trim_front(text.substr(word.size()));
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
