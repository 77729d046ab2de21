// The encoding layer of DWARF 2 to 5 (and the GNU extensions for split units and dwz): abbreviations, forms, strings,
// references and range lists, all over spans in memory. Called by the tables built on it (scope_table, line_table).
// Hostile input gives "nothing", never a read outside, and work is bounded by the sections' sizes times a constant.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_reader.h"

namespace cprof::symbolize {

struct DwarfSections {
  using Bytes = std::span<const std::byte>;
  Bytes info, abbrev, str, line, line_str, str_offsets, addr, ranges, rnglists, aranges;
};

struct Encoding {
  uint8_t version = 0;
  uint8_t offset_size = 4;  // 8 in 64-bit DWARF

  bool operator==(const Encoding&) const = default;
};
constexpr unsigned kAddressSize = 8;  // ElfFile is 64-bit only

// An attribute's value as it is stored; form 0: absent. Offsets and indexes are not resolved yet.
struct Value {
  uint16_t form = 0;
  uint64_t number = 0;
  std::string_view text;  // DW_FORM_string

  explicit operator bool() const { return form != 0; }
  bool is_address() const;
};

struct AttributeSpec {
  uint16_t name = 0, form = 0;
  int64_t implicit = 0;
};

struct Abbreviation {
  uint64_t code = 0;
  uint32_t first = 0, count = 0;  // in AbbreviationTable::specs
  int32_t fixed_size = -1;        // of all attributes together; -1: varies
  uint16_t tag = 0;
  bool has_children = false, has_sibling = false;
};

class AbbreviationTable {
 public:
  // Up to the table's end, or to stop_code when it is not 0. Broken entries end it.
  static AbbreviationTable parse(std::span<const std::byte> section, uint64_t offset, Encoding encoding, uint64_t stop_code = 0);

  const Abbreviation* find(uint64_t code) const;
  std::span<const AttributeSpec> specs(const Abbreviation& a) const { return std::span(specs_).subspan(a.first, a.count); }
  size_t bytes_read() const { return bytes_read_; }

 private:
  std::vector<Abbreviation> entries_;  // sorted by code; almost always 1, 2, 3, ...
  std::vector<AttributeSpec> specs_;
  size_t bytes_read_ = 0;
};

// Reads one value; an unknown form fails the reader.
Value read_value(ByteReader& reader, const AttributeSpec& spec, Encoding encoding);
void skip_values(ByteReader& reader, const AbbreviationTable& table, const Abbreviation& abbreviation, Encoding encoding);

// What a compile unit's root DIE sets for everything in it.
struct UnitBases {
  uint64_t str_offsets = 0, addr = 0, rnglists = 0, ranges = 0;
  uint64_t low_pc = 0;  // base address of range lists
};

// sections: those the unit lies in, with .debug_addr (and GNU .debug_ranges) of the skeleton when the unit is split.
struct ValueContext {
  const DwarfSections* sections = nullptr;
  const DwarfSections* supplementary = nullptr;  // dwz's shared file
  Encoding encoding;
  UnitBases bases;
  bool split = false;

  std::string_view string(const Value& value) const;  // "" absent or broken
  std::optional<uint64_t> address(const Value& value) const;
  std::optional<uint64_t> address_at_index(uint64_t index) const;

  // Calls-free: appends [start, end) pairs; false when broken or when `budget` entries are used up.
  bool range_list(const Value& value, std::vector<std::pair<uint64_t, uint64_t>>& into, uint64_t& budget) const;

 private:
  bool legacy_ranges(uint64_t offset, std::vector<std::pair<uint64_t, uint64_t>>& into, uint64_t& budget) const;
  bool list_entry(ByteReader& reader, uint8_t kind, uint64_t& base, std::vector<std::pair<uint64_t, uint64_t>>& into) const;
};

// NUL-terminated text in a string section; "" outside.
std::string_view string_at(std::span<const std::byte> section, uint64_t offset);

// 4 or 8 bytes.
uint64_t read_offset(ByteReader& reader, unsigned offset_size);

}  // namespace cprof::symbolize
