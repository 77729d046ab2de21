#include "format/callgrind/callgrind.h"

#include <algorithm>
#include <array>

#include "format/words.h"

namespace cprof::format {
namespace {

// Keys of the lines that may stand before "events:".
constexpr std::array<std::string_view, 13> kHeaderKeys = {"version", "creator", "pid",       "cmd",   "part",
                                                          "desc",    "target",  "positions", "event", "summary",
                                                          "thread",  "trigger", "totals"};

}  // namespace

const FormatInfo& callgrind_format() {
  static const FormatInfo info = {.name = "callgrind",
                                  .title = "callgrind profile",
                                  .extensions = {".callgrind", "callgrind.out"},
                                  .sniff = sniff_callgrind,
                                  .read = read_callgrind,
                                  .open_source = nullptr,
                                  .write = write_callgrind};
  return info;
}

// The first line says so, or all lines up to "events:" are lines of a header.
bool sniff_callgrind(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  if (text.starts_with("# callgrind format")) return true;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find_first_of("\r\n"));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (trim(line).empty() || line[0] == '#') continue;
    const auto key = line.substr(0, line.find(':'));
    if (key.size() == line.size()) return false;
    if (key == "events") return !trim(line.substr(key.size() + 1)).empty();
    if (std::ranges::find(kHeaderKeys, key) == kHeaderKeys.end()) return false;
  }
  return false;
}

}  // namespace cprof::format
