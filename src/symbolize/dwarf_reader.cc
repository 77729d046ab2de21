#include "symbolize/dwarf_reader.h"

#include <dwarf.h>

#include <algorithm>
#include <array>

namespace cprof::symbolize {
namespace {

enum class Layout : uint8_t {
  kUnknown, kNone, kFixed, kOffset, kAddress, kRefAddr, kUleb, kSleb, kString,
  kBlock1, kBlock2, kBlock4, kBlock, kIndirect, kImplicit
};

struct FormShape {
  Layout layout = Layout::kUnknown;
  uint8_t size = 0;  // kFixed
};

constexpr size_t kMaxString = 256 << 10;  // a section without any NUL must not be searched whole for each name
constexpr size_t kMaxAttributes = 4096;    // of one DIE
constexpr unsigned kMaxPlainForm = DW_FORM_addrx4;

constexpr std::array<FormShape, kMaxPlainForm + 1> make_shapes() {
  std::array<FormShape, kMaxPlainForm + 1> shapes{};
  auto set = [&](unsigned form, Layout layout, uint8_t size = 0) { shapes[form] = {layout, size}; };
  for (unsigned form : {DW_FORM_data1, DW_FORM_ref1, DW_FORM_flag, DW_FORM_strx1, DW_FORM_addrx1}) set(form, Layout::kFixed, 1);
  for (unsigned form : {DW_FORM_data2, DW_FORM_ref2, DW_FORM_strx2, DW_FORM_addrx2}) set(form, Layout::kFixed, 2);
  for (unsigned form : {DW_FORM_strx3, DW_FORM_addrx3}) set(form, Layout::kFixed, 3);
  for (unsigned form : {DW_FORM_data4, DW_FORM_ref4, DW_FORM_strx4, DW_FORM_addrx4, DW_FORM_ref_sup4}) set(form, Layout::kFixed, 4);
  for (unsigned form : {DW_FORM_data8, DW_FORM_ref8, DW_FORM_ref_sig8, DW_FORM_ref_sup8}) set(form, Layout::kFixed, 8);
  for (unsigned form : {DW_FORM_strp, DW_FORM_sec_offset, DW_FORM_line_strp, DW_FORM_strp_sup}) set(form, Layout::kOffset);
  for (unsigned form : {DW_FORM_udata, DW_FORM_ref_udata, DW_FORM_strx, DW_FORM_addrx, DW_FORM_loclistx, DW_FORM_rnglistx}) set(form, Layout::kUleb);
  set(DW_FORM_data16, Layout::kFixed, 16);
  set(DW_FORM_addr, Layout::kAddress);
  set(DW_FORM_ref_addr, Layout::kRefAddr);
  set(DW_FORM_sdata, Layout::kSleb);
  set(DW_FORM_string, Layout::kString);
  set(DW_FORM_block1, Layout::kBlock1);
  set(DW_FORM_block2, Layout::kBlock2);
  set(DW_FORM_block4, Layout::kBlock4);
  set(DW_FORM_block, Layout::kBlock);
  set(DW_FORM_exprloc, Layout::kBlock);
  set(DW_FORM_flag_present, Layout::kNone);
  set(DW_FORM_implicit_const, Layout::kImplicit);
  set(DW_FORM_indirect, Layout::kIndirect);
  return shapes;
}

constexpr auto kShapes = make_shapes();

FormShape shape_of(unsigned form) {
  if (form <= kMaxPlainForm) return kShapes[form];
  if (form == DW_FORM_GNU_addr_index || form == DW_FORM_GNU_str_index) return {Layout::kUleb, 0};
  if (form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt) return {Layout::kOffset, 0};
  return {};
}

// -1: not known without reading.
int fixed_size(unsigned form, Encoding encoding) {
  FormShape shape = shape_of(form);
  switch (shape.layout) {
    case Layout::kNone:
    case Layout::kImplicit: return 0;
    case Layout::kFixed: return shape.size;
    case Layout::kOffset: return encoding.offset_size;
    case Layout::kAddress: return kAddressSize;
    case Layout::kRefAddr: return encoding.version <= 2 ? static_cast<int>(kAddressSize) : encoding.offset_size;
    default: return -1;
  }
}

uint64_t read_fixed(ByteReader& reader, unsigned size) {
  switch (size) {
    case 1: return reader.u8();
    case 2: return reader.u16();
    case 4: return reader.u32();
    case 8: return reader.u64();
    case 3: {
      uint64_t low = reader.u16();
      return low | uint64_t{reader.u8()} << 16;
    }
    default: reader.skip(size); return 0;
  }
}

bool is_string_index(unsigned form) {
  return form == DW_FORM_strx || (form >= DW_FORM_strx1 && form <= DW_FORM_strx4) || form == DW_FORM_GNU_str_index;
}
bool is_address_index(unsigned form) {
  return form == DW_FORM_addrx || (form >= DW_FORM_addrx1 && form <= DW_FORM_addrx4) || form == DW_FORM_GNU_addr_index;
}

// section[base + index * size], nothing outside.
std::optional<uint64_t> element(std::span<const std::byte> section, uint64_t base, uint64_t index, unsigned size) {
  uint64_t offset;
  if (__builtin_mul_overflow(index, uint64_t{size}, &offset) || __builtin_add_overflow(offset, base, &offset)) return std::nullopt;
  ByteReader reader(section);
  reader.seek(offset);
  uint64_t value = read_offset(reader, size);
  return reader.ok() ? std::optional(value) : std::nullopt;
}

}  // namespace

bool Value::is_address() const { return form == DW_FORM_addr || is_address_index(form); }

uint64_t read_offset(ByteReader& reader, unsigned offset_size) { return offset_size == 8 ? reader.u64() : reader.u32(); }

std::string_view string_at(std::span<const std::byte> section, uint64_t offset) {
  if (offset >= section.size()) return {};
  return ByteReader(section.subspan(offset, std::min<uint64_t>(section.size() - offset, kMaxString))).cstring();
}

AbbreviationTable AbbreviationTable::parse(std::span<const std::byte> section, uint64_t offset, Encoding encoding,
                                           uint64_t stop_code) {
  AbbreviationTable table;
  ByteReader reader(section);
  reader.seek(offset);
  bool sorted = true;
  while (reader.ok() && !reader.at_end()) {
    Abbreviation entry;
    entry.code = reader.uleb();
    if (entry.code == 0) break;
    entry.tag = static_cast<uint16_t>(reader.uleb());
    entry.has_children = reader.u8() != 0;
    entry.first = static_cast<uint32_t>(table.specs_.size());
    int size = 0;
    while (reader.ok()) {
      AttributeSpec spec{static_cast<uint16_t>(reader.uleb()), static_cast<uint16_t>(reader.uleb()), 0};
      if (spec.form == DW_FORM_implicit_const) spec.implicit = reader.sleb();
      if (spec.name == 0 && spec.form == 0) break;
      int one = fixed_size(spec.form, encoding);
      size = size < 0 || one < 0 ? -1 : size + one;
      entry.has_sibling |= spec.name == DW_AT_sibling;
      table.specs_.push_back(spec);
      if (table.specs_.size() - entry.first > kMaxAttributes) reader.fail();
    }
    if (!reader.ok()) break;
    entry.count = static_cast<uint32_t>(table.specs_.size()) - entry.first;
    entry.fixed_size = size;
    sorted &= table.entries_.empty() || table.entries_.back().code < entry.code;
    table.entries_.push_back(entry);
    if (entry.code == stop_code) break;
  }
  if (!sorted) {
    std::stable_sort(table.entries_.begin(), table.entries_.end(), [](auto& a, auto& b) { return a.code < b.code; });
  }
  table.bytes_read_ = reader.position() - std::min<uint64_t>(offset, reader.position());
  return table;
}

const Abbreviation* AbbreviationTable::find(uint64_t code) const {
  if (code - 1 < entries_.size() && entries_[code - 1].code == code) return &entries_[code - 1];
  auto place = std::lower_bound(entries_.begin(), entries_.end(), code, [](auto& a, uint64_t c) { return a.code < c; });
  return place != entries_.end() && place->code == code ? &*place : nullptr;
}

Value read_value(ByteReader& reader, const AttributeSpec& spec, Encoding encoding) {
  Value value{spec.form, 0, {}};
  FormShape shape = shape_of(spec.form);
  switch (shape.layout) {
    case Layout::kNone: value.number = 1; break;
    case Layout::kImplicit: value.number = static_cast<uint64_t>(spec.implicit); break;
    case Layout::kFixed: value.number = read_fixed(reader, shape.size); break;
    case Layout::kOffset:
    case Layout::kAddress:
    case Layout::kRefAddr: value.number = read_fixed(reader, static_cast<unsigned>(fixed_size(spec.form, encoding))); break;
    case Layout::kUleb: value.number = reader.uleb(); break;
    case Layout::kSleb: value.number = static_cast<uint64_t>(reader.sleb()); break;
    case Layout::kString: value.text = reader.cstring(); break;
    case Layout::kBlock1: reader.skip(reader.u8()); break;
    case Layout::kBlock2: reader.skip(reader.u16()); break;
    case Layout::kBlock4: reader.skip(reader.u32()); break;
    case Layout::kBlock: reader.skip(reader.uleb()); break;
    case Layout::kIndirect: {
      AttributeSpec real{spec.name, static_cast<uint16_t>(reader.uleb()), 0};
      if (real.form != DW_FORM_indirect && real.form != DW_FORM_implicit_const) return read_value(reader, real, encoding);
      reader.fail();
      break;
    }
    case Layout::kUnknown: reader.fail(); break;
  }
  return value;
}

void skip_values(ByteReader& reader, const AbbreviationTable& table, const Abbreviation& abbreviation, Encoding encoding) {
  if (abbreviation.fixed_size >= 0) return reader.skip(static_cast<uint64_t>(abbreviation.fixed_size));
  for (const AttributeSpec& spec : table.specs(abbreviation)) {
    int size = fixed_size(spec.form, encoding);
    if (size >= 0) reader.skip(static_cast<uint64_t>(size));
    else read_value(reader, spec, encoding);
  }
}

std::string_view ValueContext::string(const Value& value) const {
  if (value.form == DW_FORM_string) return value.text;
  if (value.form == DW_FORM_strp) return string_at(sections->str, value.number);
  if (value.form == DW_FORM_line_strp) return string_at(sections->line_str, value.number);
  if (value.form == DW_FORM_GNU_strp_alt || value.form == DW_FORM_strp_sup) {
    return supplementary ? string_at(supplementary->str, value.number) : std::string_view{};
  }
  if (!is_string_index(value.form)) return {};
  auto offset = element(sections->str_offsets, bases.str_offsets, value.number, encoding.offset_size);
  return offset ? string_at(sections->str, *offset) : std::string_view{};
}

std::optional<uint64_t> ValueContext::address_at_index(uint64_t index) const {
  return element(sections->addr, bases.addr, index, kAddressSize);
}

std::optional<uint64_t> ValueContext::address(const Value& value) const {
  if (value.form == DW_FORM_addr) return value.number;
  if (is_address_index(value.form)) return address_at_index(value.number);
  return std::nullopt;
}

bool ValueContext::range_list(const Value& value, std::vector<std::pair<uint64_t, uint64_t>>& into, uint64_t& budget) const {
  uint64_t offset = value.number;
  if (encoding.version < 5) return legacy_ranges(offset + bases.ranges, into, budget);
  if (value.form == DW_FORM_rnglistx) {
    auto relative = element(sections->rnglists, bases.rnglists, value.number, encoding.offset_size);
    if (!relative) return false;
    offset = *relative + bases.rnglists;
  }
  ByteReader reader(sections->rnglists);
  reader.seek(offset);
  uint64_t base = bases.low_pc;
  while (reader.ok()) {
    uint8_t kind = reader.u8();
    if (!reader.ok() || budget == 0) return false;
    budget--;
    if (kind == DW_RLE_end_of_list) return true;
    if (!list_entry(reader, kind, base, into)) return false;
  }
  return false;
}

bool ValueContext::list_entry(ByteReader& reader, uint8_t kind, uint64_t& base,
                              std::vector<std::pair<uint64_t, uint64_t>>& into) const {
  auto indexed = [&] {
    auto address = address_at_index(reader.uleb());
    if (!address) reader.fail();
    return address.value_or(0);
  };
  uint64_t start = 0, end = 0;
  switch (kind) {
    case DW_RLE_base_addressx: base = indexed(); break;
    case DW_RLE_base_address: base = reader.u64(); break;
    case DW_RLE_offset_pair: start = base + reader.uleb(), end = base + reader.uleb(); break;
    case DW_RLE_startx_endx: start = indexed(), end = indexed(); break;
    case DW_RLE_startx_length: start = indexed(), end = start + reader.uleb(); break;
    case DW_RLE_start_end: start = reader.u64(), end = reader.u64(); break;
    case DW_RLE_start_length: start = reader.u64(), end = start + reader.uleb(); break;
    default: return false;
  }
  if (reader.ok() && end > start) into.emplace_back(start, end);
  return reader.ok();
}

// DWARF 2-4: pairs of addresses, (-1, x) sets the base, (0, 0) ends.
bool ValueContext::legacy_ranges(uint64_t offset, std::vector<std::pair<uint64_t, uint64_t>>& into, uint64_t& budget) const {
  ByteReader reader(sections->ranges);
  reader.seek(offset);
  uint64_t base = bases.low_pc;
  while (reader.ok() && budget > 0) {
    budget--;
    uint64_t start = reader.u64(), end = reader.u64();
    if (!reader.ok()) return false;
    if (start == 0 && end == 0) return true;
    if (start == UINT64_MAX) base = end;
    else if (end > start) into.emplace_back(base + start, base + end);
  }
  return false;
}

}  // namespace cprof::symbolize
