// The shapes of lines in the old text profiles, each taken apart. Used by legacy_text.cc; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cprof::format {

// All "0x..." of the text; false when one has more than 64 bits.
bool parse_addresses(std::string_view text, std::vector<uint64_t>& addresses);

// "heap profile:  1:  2 [ 3: 4 ] @ heap_v2/524288"
struct HeapHeader {
  std::string_view kind;  // "heap_v2", "growthz"
  int64_t rate = 0;       // 0: not told
};
std::optional<HeapHeader> parse_heap_header(std::string_view line);
// "heap_v2/524288": jemalloc's.
std::optional<int64_t> parse_jemalloc_header(std::string_view line);

// "1: 2 [3: 4] @ 0x1 0x2"; without the part from '@' on too.
struct HeapSample {
  int64_t objects = 0, bytes = 0, allocated_objects = 0, allocated_bytes = 0;
  std::string_view stack;
};
std::optional<HeapSample> parse_heap_sample(std::string_view line);

// "12 34 @ 0x1 0x2"
struct PairSample {
  int64_t first = 0, second = 0;
  std::string_view stack;
};
std::optional<PairSample> parse_pair_sample(std::string_view line);

// "12 @ 0x1 0x2"
struct CountSample {
  int64_t count = 0;
  std::string_view stack;
};
std::optional<CountSample> parse_count_sample(std::string_view line);
// "goroutine profile: total 12": the word.
std::optional<std::string_view> parse_count_header(std::string_view line);

// "name = value"
struct Attribute {
  std::string_view name, value;
};
std::optional<Attribute> parse_attribute(std::string_view line);
std::optional<int64_t> parse_integer(std::string_view text);

// "0x1f function (file:line)", "0x1f: function", "#\t0x1f\tfunction+0x2\t/path/file.go:12".
struct NameLine {
  uint64_t address = 0;
  std::string_view function, file;
  uint32_t line = 0;
};
std::optional<NameLine> parse_java_name(std::string_view line);
std::optional<NameLine> parse_go_name(std::string_view line);
std::optional<NameLine> parse_symbol(std::string_view line);

}  // namespace cprof::format
