#include "format/callgrind/events.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/words.h"

namespace cprof::format {
namespace {

struct KnownUnit {
  std::string_view word, unit;
  int64_t factor;
};
constexpr KnownUnit kUnits[] = {{"bytes", "bytes", 1},          {"ns", "nanoseconds", 1},
                                {"us", "nanoseconds", 1'000},   {"\xc2\xb5s", "nanoseconds", 1'000},
                                {"ms", "nanoseconds", 1'000'000}, {"s", "nanoseconds", 1'000'000'000}};

// "10ns", "bytes".
bool parse_unit(std::string_view text, CallgrindEvent& event) {
  int64_t count = 1;
  take_number(text, count);
  constexpr int64_t kMaxCount = 1'000'000'000;
  const auto known = std::ranges::find(kUnits, text, &KnownUnit::word);
  if (known == std::end(kUnits) || count <= 0 || count > kMaxCount) return false;
  event.unit = known->unit;
  event.factor = known->factor * count;
  return true;
}

constexpr std::string_view kSeparator = " : ";

}  // namespace

CallgrindEvent parse_event(std::string_view word, std::span<const std::string> long_names) {
  CallgrindEvent event{.name = std::string(word), .unit = "count", .factor = 1};
  for (std::string_view line : long_names) {
    const size_t middle = line.find(kSeparator), open = line.rfind(" (");
    const bool is_whole = middle != line.npos && open != line.npos && open > middle && line.ends_with(')');
    if (!is_whole || line.substr(0, middle) != word) continue;
    event.name = line.substr(middle + kSeparator.size(), open - middle - kSeparator.size());
    event.unit = line.substr(open + 2, line.size() - open - 3);
    return event;
  }
  const size_t open = word.find("_(");
  if (open == word.npos || open == 0 || !word.ends_with(')')) return event;
  if (parse_unit(word.substr(open + 2, word.size() - open - 3), event)) event.name = word.substr(0, open);
  return event;
}

std::string event_word(std::string_view name) {
  std::string word;
  for (char c : name) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    word += is_letter ? c : '_';
  }
  return word.empty() ? "unnamed" : word;
}

std::string event_line(std::string_view word, std::string_view name, std::string_view unit) {
  return fmt::format("event: {}{}{} ({})", word, kSeparator, name, unit);
}

}  // namespace cprof::format
