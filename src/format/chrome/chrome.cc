#include "format/chrome/chrome.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace cprof::format {
namespace {

// The keys of the objects that a head of JSON shows: those of the document itself, or of the first event of an array.
// on_key(key, depth) says whether to go on. Gives whether the document ended before the head did.
template <typename OnKey>
bool scan_keys(std::string_view text, OnKey&& on_key) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth <= 0) return true;
    if (c != '"') continue;
    const size_t begin = ++at;
    while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
    if (at >= text.size()) return false;
    const size_t behind = text.find_first_not_of(" \t\r\n", at + 1);
    const bool is_key = behind != text.npos && text[behind] == ':';
    if (is_key && !on_key(text.substr(begin, at - begin), depth)) return true;
  }
  return false;
}

template <size_t size>
bool is_one_of(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Metadata may be longer than the head: a document that goes on is taken for a trace unless a key is of another format.
bool is_trace_document(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kOfOthers = {
      "libs", "threads", "$schema", "shared", "profiles", "exporter", "nodes", "head", "startTime", "endTime",
      "timeDeltas", "resourceProfiles"};
  static constexpr std::array<std::string_view, 3> kOfFirefoxMeta = {"interval", "preprocessedProfileVersion", "processType"};
  bool is_trace = false, is_other = false, in_meta = false;
  const bool is_whole = scan_keys(text, [&](std::string_view key, int depth) {
    if (depth == 1) in_meta = key == "meta";
    is_trace = depth == 1 && (key == "traceEvents" || key == "stackFrames");
    is_other |= depth == 1 && is_one_of(kOfOthers, key);
    is_other |= depth == 2 && in_meta && is_one_of(kOfFirefoxMeta, key);
    return !is_trace;
  });
  constexpr size_t kLongHead = 16 * 1024;
  return is_trace || (!is_other && !is_whole && text.size() >= kLongHead);
}

bool is_trace_array(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kUsual = {"pid", "tid", "ts", "cat"};
  bool has_phase = false;
  int usual = 0;
  const bool is_whole = scan_keys(text, [&](std::string_view key, int depth) {
    if (depth != 2) return true;
    has_phase |= key == "ph";
    usual += is_one_of(kUsual, key);
    return !has_phase;
  });
  return has_phase || (!is_whole && usual >= 2);
}

// What some writers put where an event was to come.
void skip_nulls(std::string_view& text) {
  constexpr std::string_view kNull = "null";
  while (text.starts_with(kNull)) {
    const size_t next = text.find_first_not_of(" \t\r\n,", kNull.size());
    if (next == text.npos) return;
    text.remove_prefix(next);
  }
}

}  // namespace

bool sniff_chrome(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  const auto skip_space = [&] { text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size())); };
  skip_space();
  if (text.empty() || text.find('\0') != text.npos) return false;
  const std::string_view whole = text;
  const char first = text[0];
  text.remove_prefix(1);
  skip_space();
  if (text.empty()) return false;
  if (first == '{') return text[0] == '"' && is_trace_document(whole);
  if (first != '[') return false;
  skip_nulls(text);
  return text[0] == ']' || (text[0] == '{' && is_trace_array(whole));
}

const FormatInfo& chrome_format() {
  static const FormatInfo info = {.name = "chrome",
                                  .title = "Chrome trace",
                                  .extensions = {".trace.json", ".trace.json.gz"},
                                  .sniff = sniff_chrome,
                                  .read = read_chrome,
                                  .write = write_chrome};
  return info;
}

}  // namespace cprof::format
