// A header is read from its time, the only part with a fixed shape, outwards: comm may hold spaces, digits, colons,
// slashes and brackets. Where no time was printed, the last "tid event:" or "tid period event:" takes its place. A frame is read from both ends: the address in front, the module in the last parentheses.
#include "format/text/text_lines.h"

#include <algorithm>

#include "format/words.h"

namespace cprof::format {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr uint64_t kSecond = 1'000'000'000;

bool all_digits(std::string_view text) { return !text.empty() && text.find_first_not_of(kDigits) == text.npos; }

// "12.000001" in nanoseconds; up to 9 decimals.
bool parse_time(std::string_view text, uint64_t& time_ns) {
  size_t dot = text.find('.');
  if (dot == text.npos) return false;
  std::string_view decimals = text.substr(dot + 1);
  uint64_t seconds = 0, fraction = 0;
  if (!all_digits(text.substr(0, dot)) || !all_digits(decimals) || decimals.size() > 9) return false;
  if (!parse_number(text.substr(0, dot), seconds) || !parse_number(decimals, fraction)) return false;
  for (size_t i = decimals.size(); i < 9; ++i) fraction *= 10;
  if (seconds > INT64_MAX / kSecond - 1) return false;
  time_ns = seconds * kSecond + fraction;
  return true;
}

// Takes the last word off the front part.
std::string_view take_last_word(std::string_view& text) {
  text = trim(text);
  size_t blank = find_last_blank(text);
  std::string_view word = blank == text.npos ? text : text.substr(blank + 1);
  text = blank == text.npos ? std::string_view() : trim(text.substr(0, blank));
  return word;
}

// "1234/5678" or "5678".
bool parse_ids(std::string_view word, TextHeader& header) {
  size_t slash = word.find('/');
  std::string_view tid = slash == word.npos ? word : word.substr(slash + 1);
  if (slash != word.npos && !parse_number(word.substr(0, slash), header.pid)) return false;
  return parse_number(tid, header.tid);
}

bool parse_cpu(std::string_view word, uint32_t& cpu) {
  const bool is_cpu = word.size() > 2 && word.front() == '[' && word.back() == ']' && all_digits(word.substr(1, word.size() - 2));
  return is_cpu && parse_number(word.substr(1, word.size() - 2), cpu);
}

// "comm pid/tid [cpu]" and up to 3 words more: the columns of -F misc, of -F tod (a date and a time) and of latency flags.
bool parse_front_with_columns(std::string_view rest, TextHeader& header) {
  constexpr int kMaxColumns = 3;
  bool is_cpu = false;
  for (int column = 0; column <= kMaxColumns && !is_cpu; ++column) is_cpu = parse_cpu(take_last_word(rest), header.cpu);
  if (!is_cpu || !parse_ids(take_last_word(rest), header)) return false;
  header.comm = rest;
  return true;
}

void parse_front(std::string_view front, TextHeader& header) {
  std::string_view rest = front;
  std::string_view word = take_last_word(rest);
  if (parse_cpu(word, header.cpu)) {
    front = rest;
    word = take_last_word(rest);
  }
  if (parse_ids(word, header)) {
    header.comm = rest;
    return;
  }
  if (parse_front_with_columns(front, header)) return;
  header.pid = header.tid = -1;
  header.comm = trim(front);
}

// "  250000 cycles:u: ", "cycles: ", "".
void parse_back(std::string_view back, TextHeader& header) {
  back = trim(back);
  size_t blank = find_blank(back);
  std::string_view first = back.substr(0, blank);
  if (all_digits(first) && parse_number(first, header.period))
    back = blank == back.npos ? std::string_view() : trim(back.substr(blank));
  size_t end = std::min(find_blank(back), back.size());
  header.event = back.substr(0, end);
  header.rest = trim(back.substr(end));
  while (header.event.ends_with(':')) header.event.remove_suffix(1);
}

bool is_event(std::string_view word) {
  bool letter = !word.empty() && ((word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z'));
  return letter && word.size() > 1 && word.ends_with(':') && !word.ends_with("]:");  // "[select, 3 minutes]:" is none
}

// "comm tid event:", "comm pid/tid [cpu] period event: rest".
std::optional<TextHeader> parse_header_without_time(std::string_view line) {
  size_t colon = line.find(": ");
  std::string_view front = trim(colon == line.npos ? line : line.substr(0, colon + 1));
  std::string_view event = take_last_word(front);
  TextHeader header;
  if (!is_event(event) || front.empty()) return std::nullopt;
  std::string_view before = front, period = take_last_word(before);
  bool is_period = all_digits(period) && !before.empty() && before.find_first_of(kDigits) != before.npos;
  if (is_period) {
    TextHeader with_period;
    parse_front(before, with_period);
    is_period = with_period.tid >= 0 && parse_number(period, with_period.period);
    if (is_period) header = with_period;
  }
  if (!is_period) parse_front(front, header);
  if (header.tid < 0) return std::nullopt;
  header.event = event.substr(0, event.find_last_not_of(':') + 1);
  if (colon != line.npos) header.rest = trim(line.substr(colon + 2));
  return header;
}

// "name+0x1f": a hexadecimal offset and nothing else behind the last plus.
void take_offset(TextFrame& frame) {
  size_t plus = frame.name.rfind("+0x");
  if (plus == frame.name.npos || plus == 0) return;
  std::string_view digits = frame.name.substr(plus + 3);
  if (digits.empty() || !parse_number(digits, frame.offset, 16)) return;
  frame.has_offset = true;
  frame.name = frame.name.substr(0, plus);
}

// The last group in parentheses that stands alone: " (/path)", " (/path (deleted))", " ([JIT app cache])".
std::string_view take_module(std::string_view& rest) {
  if (!rest.ends_with(')')) return {};
  constexpr std::string_view kDeleted = " (deleted))";
  size_t limit = rest.ends_with(kDeleted) ? rest.size() - kDeleted.size() : rest.size();
  size_t open = rest.find(" (/");  // a path may hold blanks and parentheses itself
  if (open == rest.npos) open = rest.substr(0, limit).rfind(" (");
  size_t skip = 2;
  if (open == rest.npos) {
    if (!rest.starts_with('(')) return {};
    open = 0;
    skip = 1;
  }
  std::string_view module = rest.substr(open + skip, rest.size() - open - skip - 1);
  rest = trim(rest.substr(0, open));
  return module;
}

// "/usr/lib/libc.so.6+0x2724a". A file may be called so: then its offset would hardly fit the address.
void take_file_offset(TextFrame& frame) {
  constexpr uint64_t kInPage = 0xfff;
  size_t plus = frame.module.rfind("+0x");
  const bool is_file = frame.module.starts_with('/') || frame.module.starts_with("[vdso]+");
  if (!is_file || plus == frame.module.npos) return;
  bool is_number = parse_number(frame.module.substr(plus + 3), frame.file_offset, 16);
  bool fits = is_number && frame.file_offset <= frame.address && (frame.file_offset & kInPage) == (frame.address & kInPage);
  if (!fits) return;
  frame.has_file_offset = true;
  frame.module = frame.module.substr(0, plus);
}

void take_inlined(TextFrame& frame) {
  if (frame.module != "inlined") return;
  frame.is_inlined = true;
  frame.module = {};
}

// perf puts a tab and blanks before an address, and one blank before a name that stands alone: " add (/b)" is no address.
bool is_bare(std::string_view line, std::string_view behind_first_word) {
  const bool is_indented_once = line.size() > 1 && line[0] == ' ' && !is_blank(line[1]);
  return is_indented_once && (behind_first_word.empty() || behind_first_word.starts_with('('));
}

}  // namespace

// A comm has 16 bytes, ids, CPU and time some more: a colon that comes later ends no time. Without the bound a long line of
// another kind of text would be searched once for each of its colons.
constexpr size_t kMaxFront = 512;

// A comm may hold what looks like a time ("srv 1.5: x"): then the ids in front of the right one tell.
std::optional<TextHeader> parse_header(std::string_view line) {
  std::optional<TextHeader> first;
  for (size_t colon = line.find(':'); colon < kMaxFront; colon = line.find(':', colon + 1)) {
    std::string_view front = line.substr(0, colon);
    size_t blank = find_last_blank(front);
    std::string_view time = blank == front.npos ? front : front.substr(blank + 1);
    TextHeader header;
    if (!parse_time(time, header.time_ns)) continue;
    parse_front(front.substr(0, front.size() - time.size()), header);
    parse_back(line.substr(colon + 1), header);
    if (!first || header.pid >= 0) first = header;
    if (header.pid >= 0 || header.tid >= 0) break;
  }
  return first ? first : parse_header_without_time(line);
}

std::optional<TextFrame> parse_frame(std::string_view whole) {
  std::string_view line = trim(whole);
  size_t blank = find_blank(line);
  std::string_view address = line.substr(0, blank);
  TextFrame frame;
  if (address.starts_with("0x")) address.remove_prefix(2);
  if (address.empty() || !parse_number(address, frame.address, 16)) return std::nullopt;
  std::string_view rest = blank == line.npos ? std::string_view() : trim(line.substr(blank));
  if (is_bare(whole, rest)) return std::nullopt;
  frame.module = take_module(rest);
  take_file_offset(frame);
  take_inlined(frame);
  frame.name = rest;
  take_offset(frame);
  return frame;
}

std::optional<TextFrame> parse_bare_frame(std::string_view line) {
  if (line.empty() || !is_blank(line[0])) return std::nullopt;
  TextFrame frame;
  frame.has_address = false;
  std::string_view rest = trim(line);
  const bool is_indented_once = line.size() > 1 && !is_blank(line[1]);
  frame.module = take_module(rest);
  if (frame.module.empty() && !is_indented_once) return std::nullopt;  // any words further in
  take_inlined(frame);
  frame.name = rest;
  take_offset(frame);
  return frame.name.empty() ? std::nullopt : std::optional(frame);
}

namespace {

// What perf prints where it found no line: "libc.so.6[1f4a0]", "read+17".
bool is_place_without_line(std::string_view text) {
  uint64_t number = 0;
  const size_t open = text.rfind('['), plus = text.rfind('+');
  if (text.ends_with(']') && open != text.npos && open > 0) return parse_number(text.substr(open + 1, text.size() - open - 2), number, 16);
  return plus != text.npos && plus > 0 && all_digits(text.substr(plus + 1));
}

}  // namespace

std::optional<TextSource> parse_source_line(std::string_view line) {
  if (!line.starts_with("  ") || line.size() < 3 || is_blank(line[2])) return std::nullopt;
  line = trim(line);
  if (line.ends_with(')')) line = trim(line.substr(0, line.rfind(" (discriminator ")));
  const size_t colon = line.rfind(':');
  TextSource source;
  if (is_place_without_line(line)) return source;
  if (colon == line.npos || colon == 0 || !parse_number(line.substr(colon + 1), source.line)) return std::nullopt;
  source.file = line.substr(0, colon);
  if (source.file == "??") source = {};
  return source;
}

bool is_header_of_hex_comm(const TextFrame& frame) {
  TextHeader ids;
  return !frame.name.empty() && kDigits.find(frame.name[0]) != kDigits.npos &&
         parse_ids(frame.name.substr(0, find_blank(frame.name)), ids);
}

// An address has 4 digits at least here, and 6 where no module follows, else a tracepoint's numbers would be taken for one.
std::optional<TextFrame> parse_trailing_frame(std::string_view rest) {
  rest = trim(rest.substr(0, rest.find(" => ")));
  const std::string_view first = rest.substr(0, find_blank(rest));
  if (uint64_t address = 0; !rest.ends_with(')') && first.size() >= 6 && parse_number(first, address, 16)) return parse_frame(rest);
  for (size_t end = rest.size(); rest.ends_with(')') && end > 0;) {
    size_t blank = find_last_blank(rest.substr(0, end));
    size_t start = blank == rest.npos ? 0 : blank + 1;
    std::string_view word = rest.substr(start, end - start);
    uint64_t address = 0;
    if (parse_number(word, address, 16) && (word.size() >= 4 || word == "0")) return parse_frame(rest.substr(start));
    end = blank == rest.npos ? 0 : blank;
  }
  return std::nullopt;
}

}  // namespace cprof::format
