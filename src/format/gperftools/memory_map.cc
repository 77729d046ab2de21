#include "format/gperftools/memory_map.h"

#include <algorithm>
#include <optional>

#include "format/words.h"

namespace cprof::format {
namespace {

constexpr int kHex = 16;
constexpr uint64_t kUsualStart = 0x400000;  // of a program that is not position-independent

bool parse_range(std::string_view text, MapEntry& entry) {
  const size_t dash = text.find('-');
  return dash != text.npos && parse_number(text.substr(0, dash), entry.start, kHex) &&
         parse_number(text.substr(dash + 1), entry.limit, kHex) && entry.start < entry.limit;
}

bool is_permissions(std::string_view word) {
  return word.size() >= 3 && word.find_first_not_of("-rwxps") == word.npos;
}

enum class Parsed : uint8_t { kNo, kData, kCode };

// "start-end r-xp offset device inode path" or "start-end: path [(version) @hex offset]".
Parsed parse_entry(std::string_view line, MapEntry& entry) {
  std::string_view range = take_word(line);
  const bool is_short = range.ends_with(':');
  if (is_short) range.remove_suffix(1);
  if (!parse_range(range, entry)) return Parsed::kNo;
  if (is_short) {
    const size_t at = line.rfind('@');
    if (at != line.npos && parse_number(trim(line.substr(at + 1)), entry.offset, kHex)) line = line.substr(0, at);
    entry.path = take_word(line);
    return Parsed::kCode;
  }
  std::string_view permissions = take_word(line);
  if (!is_permissions(permissions) || !parse_number(take_word(line), entry.offset, kHex)) return Parsed::kNo;
  take_word(line);  // device
  take_word(line);  // inode
  entry.path = line;
  return permissions.find('x') == permissions.npos ? Parsed::kData : Parsed::kCode;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::string MemoryMap::expand(std::string_view line) const {
  std::string text(line);
  for (const auto& [name, value] : values_) {  // longer names come before their own beginnings
    for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + value.size()))
      text.replace(at, name.size(), value);
  }
  return text;
}

bool MemoryMap::add_line(std::string_view line) {
  const std::string text = values_.empty() ? std::string(line) : expand(line);
  MapEntry entry;
  const Parsed parsed = parse_entry(text, entry);
  if (parsed == Parsed::kCode) entries_.push_back(std::move(entry));
  if (parsed != Parsed::kNo) return true;
  const size_t equals = text.find('=');
  if (equals == text.npos) return false;
  const std::string_view name = trim(std::string_view(text).substr(0, equals));
  constexpr size_t kMaxValues = 16, kMaxText = 4096;
  if (!is_name(name) || values_.size() >= kMaxValues || text.size() > kMaxText) return false;
  values_["$" + std::string(name)] = trim(std::string_view(text).substr(equals + 1));
  return true;
}

void MemoryMap::finish() {
  std::ranges::stable_sort(entries_, {}, &MapEntry::start);
  if (entries_.size() > 1 && entries_[0].path.starts_with("/anon_hugepage") && entries_[0].limit == entries_[1].start)
    entries_.erase(entries_.begin());  // the program's own text, moved to huge pages
  std::vector<MapEntry> joined;
  for (MapEntry& entry : entries_) {
    MapEntry* last = joined.empty() ? nullptr : &joined.back();
    const bool goes_on = last && last->limit == entry.start && last->path == entry.path &&
                         last->offset + (last->limit - last->start) == entry.offset;
    if (goes_on)
      last->limit = entry.limit;
    else
      joined.push_back(std::move(entry));
  }
  if (!joined.empty() && joined[0].offset != 0 && joined[0].start - joined[0].offset == kUsualStart) {
    joined[0].start = kUsualStart;
    joined[0].offset = 0;
  }
  entries_ = std::move(joined);
}

size_t MemoryMap::find(uint64_t address) const {
  auto behind = std::ranges::upper_bound(entries_, address, {}, &MapEntry::start);
  if (behind == entries_.begin()) return kNone;
  --behind;
  return address < behind->limit ? static_cast<size_t>(behind - entries_.begin()) : kNone;
}

}  // namespace cprof::format
