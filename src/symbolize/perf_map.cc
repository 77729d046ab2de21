#include <charconv>
#include <cstring>
#include <string>

#include "symbolize/interval_map.h"
#include "symbolize/symbolizer.h"

namespace cprof::symbolize {
namespace {

std::optional<uint64_t> take_hex(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  uint64_t value = 0;
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
  if (error != std::errc{}) return std::nullopt;
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  if (line.empty() || (line[0] != ' ' && line[0] != '\t')) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return value;
}

// "start size name with spaces"
std::optional<PerfMap::Entry> parse_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  auto start = take_hex(line);
  auto size = start ? take_hex(line) : std::nullopt;
  if (!size || line.empty() || *start + *size < *start) return std::nullopt;
  return PerfMap::Entry{*start, *size, line};
}

}  // namespace

struct PerfMap::Impl {
  std::string text;  // names point into it
  std::vector<Entry> entries;
  IntervalMap map;
};

PerfMap::PerfMap() : impl_(std::make_unique<Impl>()) {}
PerfMap::PerfMap(PerfMap&&) noexcept = default;
PerfMap& PerfMap::operator=(PerfMap&&) noexcept = default;
PerfMap::~PerfMap() = default;

PerfMap PerfMap::parse(std::string_view text) {
  PerfMap result;
  Impl& impl = *result.impl_;
  // A last line without its newline is still being written by the JIT.
  impl.text = text.substr(0, text.rfind('\n') + 1);

  std::vector<Interval> intervals;
  std::string_view rest = impl.text;
  while (!rest.empty()) {
    size_t length = rest.find('\n');
    auto entry = parse_line(rest.substr(0, length));
    rest.remove_prefix(length + 1);
    if (!entry || impl.entries.size() >= IntervalMap::kNone) continue;
    // Size zero: the start alone is known to be its code.
    uint64_t end = entry->start + std::max<uint64_t>(entry->size, 1);
    auto index = static_cast<uint32_t>(impl.entries.size());
    intervals.push_back({entry->start, end, index, index});
    impl.entries.push_back(*entry);
  }
  impl.map = IntervalMap(std::move(intervals));
  return result;
}

std::optional<PerfMap::Entry> PerfMap::find(uint64_t address) const {
  uint32_t index = impl_->map.find(address);
  if (index == IntervalMap::kNone) return std::nullopt;
  return impl_->entries[index];
}

size_t PerfMap::size() const { return impl_->entries.size(); }

}  // namespace cprof::symbolize
