#include "serve/http.h"

#include <charconv>

#include "base/ascii.h"

namespace cprof::serve {
namespace {

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

}  // namespace

Answer failed(int status, std::string text) {
  Answer answer;
  answer.status = status;
  answer.body = std::move(text);
  return answer;
}

std::string_view Target::parameter(std::string_view name) const {
  auto found = parameters.find(name);
  return found == parameters.end() ? std::string_view() : found->second;
}

std::optional<uint64_t> Target::number(std::string_view name) const {
  const std::string_view text = parameter(name);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<Target> parse_target(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  Target result;
  const size_t question = target.find('?');
  result.path = target.substr(0, question);
  if (question == std::string_view::npos) return result;
  std::string_view rest = target.substr(question + 1);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const size_t equals = part.find('=');
    auto value = decoded(equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1));
    if (!value) return std::nullopt;
    result.parameters[std::string(part.substr(0, equals))] = std::move(*value);
  }
  return result;
}

bool equal_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace cprof::serve
