#include "format/gperftools/legacy_lines.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "format/words.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

constexpr int kHex = 16;

bool is_hex(char c) { return hex_digit(c) >= 0; }

// Takes a line apart from its front; the first thing that is missing makes ok() false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool ok() const { return ok_; }
  std::string_view rest() const { return trim(text_); }
  bool at_end() const { return rest().empty(); }

  Scanner& literal(std::string_view expected) {
    text_ = rest();
    ok_ &= text_.starts_with(expected);
    if (ok_) text_.remove_prefix(expected.size());
    return *this;
  }
  Scanner& number(int64_t& value) {
    text_ = rest();
    ok_ = ok_ && take_number(text_, value);
    return *this;
  }

 private:
  std::string_view text_;
  bool ok_ = true;
};

bool take_address(std::string_view& text, uint64_t& address) {
  text = trim(text);
  if (!text.starts_with("0x")) return false;
  text.remove_prefix(2);
  return take_number(text, address, kHex);
}

// "path:12" at the end of text.
bool split_line(std::string_view text, std::string_view& file, uint32_t& line) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return false;
  const auto number = parse_integer(text.substr(colon + 1));
  if (!number) return false;
  file = text.substr(0, colon);
  line = *number > 0 && *number <= int64_t{UINT32_MAX} ? static_cast<uint32_t>(*number) : 0;
  return true;
}

}  // namespace

bool parse_addresses(std::string_view text, std::vector<uint64_t>& addresses) {
  for (size_t at = text.find("0x"); at != text.npos; at = text.find("0x", at)) {
    at += 2;
    uint64_t address = 0;
    auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), address, kHex);
    if (error == std::errc::result_out_of_range) return false;
    if (error == std::errc()) addresses.push_back(address);
    at = static_cast<size_t>(end - text.data());
  }
  return true;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  return parse_number(trim(text), value) ? std::optional(value) : std::nullopt;
}

std::optional<HeapHeader> parse_heap_header(std::string_view line) {
  int64_t total = 0;
  Scanner scan(line);
  scan.literal("heap profile:").number(total).literal(":").number(total).literal("[").number(total).literal(":");
  scan.number(total).literal("]").literal("@");
  if (!scan.ok() || scan.at_end()) return std::nullopt;
  HeapHeader header;
  const std::string_view rest = scan.rest();
  const size_t slash = rest.find('/');
  header.kind = trim(rest.substr(0, slash));
  if (slash == rest.npos || slash + 1 == rest.size()) return header;
  const auto rate = parse_integer(rest.substr(slash + 1));
  if (!rate || *rate < 0) return std::nullopt;
  header.rate = *rate;
  return header;
}

std::optional<int64_t> parse_jemalloc_header(std::string_view line) {
  constexpr std::string_view kStart = "heap_v2/";
  if (!line.starts_with(kStart)) return std::nullopt;
  return parse_integer(line.substr(kStart.size()));
}

std::optional<HeapSample> parse_heap_sample(std::string_view line) {
  HeapSample sample;
  Scanner scan(line);
  scan.number(sample.objects).literal(":").number(sample.bytes).literal("[").number(sample.allocated_objects);
  scan.literal(":").number(sample.allocated_bytes).literal("]");
  if (!scan.ok()) return std::nullopt;
  if (scan.at_end()) return sample;
  scan.literal("@");
  sample.stack = scan.rest();
  return scan.ok() ? std::optional(sample) : std::nullopt;
}

std::optional<PairSample> parse_pair_sample(std::string_view line) {
  PairSample sample;
  Scanner scan(line);
  scan.number(sample.first).number(sample.second).literal("@");
  sample.stack = scan.rest();
  return scan.ok() ? std::optional(sample) : std::nullopt;
}

std::optional<CountSample> parse_count_sample(std::string_view line) {
  CountSample sample;
  Scanner scan(line);
  scan.number(sample.count).literal("@");
  sample.stack = scan.rest();
  return scan.ok() ? std::optional(sample) : std::nullopt;
}

std::optional<std::string_view> parse_count_header(std::string_view line) {
  constexpr std::string_view kMiddle = " profile: total ";
  const size_t middle = line.find(kMiddle);
  if (middle == line.npos || middle == 0 || !parse_integer(line.substr(middle + kMiddle.size()))) return std::nullopt;
  const auto word = line.substr(0, middle);
  const bool is_word = std::ranges::all_of(word, [](char c) { return is_hex(c) || c == '_' || (c >= 'G' && c <= 'z'); });
  return is_word ? std::optional(word) : std::nullopt;
}

std::optional<Attribute> parse_attribute(std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == line.npos) return std::nullopt;
  return Attribute{trim(line.substr(0, equals)), trim(line.substr(equals + 1))};
}

std::optional<NameLine> parse_java_name(std::string_view line) {
  NameLine name;
  if (!take_address(line, name.address)) return std::nullopt;
  name.function = trim(line);
  if (name.function.empty()) return std::nullopt;
  const size_t open = name.function.rfind(" (");
  if (open == name.function.npos || !name.function.ends_with(')')) {
    if (name.function.find("generated stub/JIT") != name.function.npos) name.function = "STUB";
    return name;
  }
  const auto inside = name.function.substr(open + 2, name.function.size() - open - 3);
  if (!split_line(inside, name.file, name.line)) name.file = profile::base_name(inside);
  name.function = trim(name.function.substr(0, open));
  return name;
}

std::optional<NameLine> parse_go_name(std::string_view line) {
  NameLine name;
  if (!line.starts_with("#")) return std::nullopt;
  line.remove_prefix(1);
  if (!take_address(line, name.address)) return std::nullopt;
  line = trim(line);
  const size_t tab = line.find('\t');
  if (tab == line.npos) return std::nullopt;
  name.function = trim(line.substr(0, tab));
  if (const size_t plus = name.function.rfind("+0x"); plus != name.function.npos && plus > 0)
    name.function = name.function.substr(0, plus);
  if (!split_line(trim(line.substr(tab)), name.file, name.line)) return std::nullopt;
  return name;
}

std::optional<NameLine> parse_symbol(std::string_view line) {
  NameLine name;
  if (!take_address(line, name.address)) return std::nullopt;
  if (line.starts_with(':')) line.remove_prefix(1);
  name.function = trim(line);
  const bool is_name = !name.function.empty() && !name.function.starts_with("0x");
  return is_name ? std::optional(name) : std::nullopt;
}

}  // namespace cprof::format
