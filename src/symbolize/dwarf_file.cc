#include "symbolize/dwarf_file.h"

#include <dwarf.h>

#include <algorithm>

namespace cprof::symbolize {
namespace {

constexpr uint64_t kBudgetFloor = 1 << 20;

struct Wanted {
  std::string_view name;
  DwarfSections::Bytes DwarfSections::*member;
};
constexpr Wanted kWanted[] = {
    {".debug_info", &DwarfSections::info},         {".debug_abbrev", &DwarfSections::abbrev},
    {".debug_str", &DwarfSections::str},           {".debug_line", &DwarfSections::line},
    {".debug_line_str", &DwarfSections::line_str}, {".debug_str_offsets", &DwarfSections::str_offsets},
    {".debug_addr", &DwarfSections::addr},         {".debug_ranges", &DwarfSections::ranges},
    {".debug_rnglists", &DwarfSections::rnglists}, {".debug_aranges", &DwarfSections::aranges},
};

// The header in front of a table that has no explicit base attribute (split units of DWARF 5).
uint64_t table_header_size(Encoding encoding, bool with_offset_count) {
  return (encoding.offset_size == 8 ? 12 : 4) + 4 + (with_offset_count ? 4 : 0);
}

}  // namespace

std::optional<uint64_t> Unit::reference(const Value& value) const {
  switch (value.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata: return offset + value.number;
    case DW_FORM_ref_addr: return value.number;
    default: return std::nullopt;
  }
}

DwarfSections DwarfFile::read_sections(object::ElfFile& file, std::string_view suffix, Diagnostics& diagnostics) {
  DwarfSections sections;
  for (const Wanted& wanted : kWanted) {
    auto bytes = file.section_data(std::string(wanted.name) + std::string(suffix));
    if (bytes) {
      sections.*wanted.member = *bytes;
    } else {
      diagnostics.add("debug_section_unreadable", Severity::kError,
                      "a debug section could not be read; names come from what is left", 1, bytes.error().message);
    }
  }
  return sections;
}

// Compilers put each type unit of DWARF 5 into a .debug_info of its own, so that linkers can drop duplicates; in a .dwo
// they stay apart.
bool DwarfFile::join_info_sections(std::string_view suffix) {
  const std::string name = ".debug_info" + std::string(suffix);
  auto has_name = [&](const object::Section& section) { return section.name == name; };
  if (suffix.empty() || std::ranges::count_if(elf_->sections(), has_name) < 2) return true;
  for (const object::Section& section : elf_->sections())
    if (has_name(section) && !elf_->append_section_data(section, &joined_info_)) return false;
  sections_.info = joined_info_;
  return true;
}

std::unique_ptr<DwarfFile> DwarfFile::load(std::shared_ptr<object::ElfFile> file, std::string_view suffix,
                                           Diagnostics& diagnostics) {
  if (!file->find_section(".debug_info" + std::string(suffix))) return nullptr;
  auto result = std::unique_ptr<DwarfFile>(new DwarfFile());
  result->sections_ = read_sections(*file, suffix, diagnostics);
  result->elf_ = std::move(file);
  if (!result->join_info_sections(suffix) || !result->prepare()) return nullptr;
  return result;
}

std::unique_ptr<DwarfFile> DwarfFile::from_sections(std::shared_ptr<object::ElfFile> file, const DwarfSections& sections) {
  auto result = std::unique_ptr<DwarfFile>(new DwarfFile());
  result->elf_ = std::move(file);
  result->sections_ = sections;
  return result->prepare() ? std::move(result) : nullptr;
}

bool DwarfFile::prepare() {
  if (sections_.info.empty() || sections_.abbrev.empty()) return false;
  abbreviation_budget_ = 16 * (kBudgetFloor + sections_.abbrev.size());
  // A list is read once by a sound file, and an entry takes two bytes at least.
  range_budget_ = kBudgetFloor + (sections_.info.size() + sections_.ranges.size() + sections_.rnglists.size()) / 2;
  parse_units();
  return true;
}

void DwarfFile::parse_units() {
  ByteReader reader(sections_.info);
  while (!reader.at_end()) {
    Unit unit;
    unit.offset = reader.position();
    if (!parse_unit(reader, unit)) break;
    units_.push_back(unit);
    reader.seek(unit.end);
  }
}

// Contents of a unit that we cannot read (an unknown version) are stepped over; false: the length itself is broken.
bool DwarfFile::parse_unit(ByteReader& reader, Unit& unit) const {
  Encoding& encoding = unit.values.encoding;
  uint64_t length = reader.u32();
  if (length == 0xffffffff) {
    encoding.offset_size = 8;
    length = reader.u64();
  }
  if (!reader.ok() || length > reader.remaining()) return false;
  unit.end = reader.position() + length;

  uint16_t version = reader.u16();
  unit.type = DW_UT_compile;
  uint8_t address_size = 0;
  if (version >= 5) {
    unit.type = reader.u8();
    address_size = reader.u8();
    unit.abbrev_offset = read_offset(reader, encoding.offset_size);
  } else {
    unit.abbrev_offset = read_offset(reader, encoding.offset_size);
    address_size = reader.u8();
  }
  if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile) unit.dwo_id = reader.u64();
  if (unit.type == DW_UT_type || unit.type == DW_UT_split_type) reader.skip(8 + encoding.offset_size);
  encoding.version = static_cast<uint8_t>(version);
  unit.first_die = reader.position();
  unit.values.sections = &sections_;
  bool readable = reader.ok() && version >= 2 && version <= 5 && address_size == kAddressSize && unit.first_die < unit.end;
  if (!readable) unit.root_state = Unit::Root::kBroken;
  return reader.ok();
}

Unit* DwarfFile::unit_at(uint64_t info_offset) {
  auto after = std::upper_bound(units_.begin(), units_.end(), info_offset,
                                [](uint64_t offset, const Unit& unit) { return offset < unit.offset; });
  if (after == units_.begin()) return nullptr;
  Unit& unit = *std::prev(after);
  return info_offset >= unit.first_die && info_offset < unit.end ? &unit : nullptr;
}

void DwarfFile::set_supplementary(const DwarfFile* file) {
  for (Unit& unit : units_) unit.values.supplementary = &file->sections();
}

void DwarfFile::adopt_skeleton(const Unit& skeleton, const DwarfSections& main) {
  sections_.addr = main.addr;
  if (sections_.ranges.empty()) sections_.ranges = main.ranges;
  if (sections_.line_str.empty()) sections_.line_str = main.line_str;
  for (Unit& unit : units_) {
    UnitBases& bases = unit.values.bases;
    bases.addr = skeleton.values.bases.addr;
    bases.ranges = skeleton.values.bases.ranges;
    bases.low_pc = skeleton.values.bases.low_pc;
    if (unit.values.encoding.version >= 5) {
      bases.str_offsets = table_header_size(unit.values.encoding, false);
      bases.rnglists = table_header_size(unit.values.encoding, true);
    }
  }
}

const AbbreviationTable& DwarfFile::abbreviations(Unit& unit) {
  if (!unit.abbreviations) {
    auto& table = tables_[{unit.abbrev_offset, unit.values.encoding.offset_size}];
    // Version matters only for DWARF 2's DW_FORM_ref_addr; such a table is not shared with others.
    if (!table || unit.values.encoding.version <= 2) {
      // Out of budget (many units, each beginning inside one long table): an empty table, which makes the unit broken.
      uint64_t offset = abbreviation_budget_ > 0 ? unit.abbrev_offset : sections_.abbrev.size();
      table = std::make_shared<AbbreviationTable>(AbbreviationTable::parse(sections_.abbrev, offset, unit.values.encoding));
      abbreviation_budget_ -= std::min<uint64_t>(abbreviation_budget_, table->bytes_read());
    }
    unit.abbreviations = table;
  }
  return *unit.abbreviations;
}

bool DwarfFile::read_root(Unit& unit) {
  if (unit.root_state != Unit::Root::kUnread) return unit.root_state == Unit::Root::kRead;
  unit.root_state = Unit::Root::kBroken;
  ByteReader reader(sections_.info.first(unit.end));
  reader.seek(unit.first_die);
  uint64_t code = reader.uleb();
  // The root is nearly always the first entry, so one need not read the whole table of each unit of a big file.
  auto table = AbbreviationTable::parse(sections_.abbrev, unit.abbrev_offset, unit.values.encoding, code);
  if (table.bytes_read() > abbreviation_budget_) return false;
  abbreviation_budget_ -= table.bytes_read();
  const Abbreviation* root = table.find(code);
  if (!root || !take_root_attributes(unit, reader, table, *root)) return false;
  unit.root_state = Unit::Root::kRead;
  return true;
}

bool DwarfFile::take_root_attributes(Unit& unit, ByteReader& reader, const AbbreviationTable& table, const Abbreviation& root) {
  Value name, comp_dir, dwo_name;
  UnitBases& bases = unit.values.bases;
  if (unit.type == DW_UT_compile && root.tag == DW_TAG_skeleton_unit) unit.type = DW_UT_skeleton;
  for (const AttributeSpec& spec : table.specs(root)) {
    Value value = read_value(reader, spec, unit.values.encoding);
    switch (spec.name) {
      case DW_AT_name: name = value; break;
      case DW_AT_comp_dir: comp_dir = value; break;
      case DW_AT_dwo_name:
      case DW_AT_GNU_dwo_name: dwo_name = value; break;
      case DW_AT_GNU_dwo_id: unit.dwo_id = value.number; break;
      case DW_AT_low_pc: unit.low_pc = value; break;
      case DW_AT_high_pc: unit.high_pc = value; break;
      case DW_AT_ranges: unit.ranges = value; break;
      case DW_AT_stmt_list: unit.line_offset = value; break;
      case DW_AT_language: unit.language = static_cast<uint16_t>(value.number); break;
      case DW_AT_str_offsets_base: bases.str_offsets = value.number; break;
      case DW_AT_addr_base:
      case DW_AT_GNU_addr_base: bases.addr = value.number; break;
      case DW_AT_rnglists_base: bases.rnglists = value.number; break;
      case DW_AT_GNU_ranges_base: bases.ranges = value.number; break;
      default: break;
    }
  }
  if (!reader.ok()) return false;
  unit.name = unit.values.string(name);  // only now are the bases known
  unit.comp_dir = unit.values.string(comp_dir);
  unit.dwo_name = unit.values.string(dwo_name);
  if (unit.low_pc) bases.low_pc = unit.values.address(unit.low_pc).value_or(0);
  return true;
}

bool DwarfFile::code_ranges(const ValueContext& values, const Value& low, const Value& high, const Value& ranges,
                            std::vector<std::pair<uint64_t, uint64_t>>& into) {
  if (ranges) return values.range_list(ranges, into, range_budget_);
  auto start = values.address(low);
  if (!start || !high) return true;
  auto end = high.is_address() ? values.address(high) : std::optional(*start + high.number);
  if (end && *end > *start) into.emplace_back(*start, *end);
  return true;
}

bool DwarfFile::unit_ranges(const Unit& unit, std::vector<std::pair<uint64_t, uint64_t>>& into) {
  ValueContext values = unit.values;
  values.bases.ranges = 0;  // DW_AT_GNU_ranges_base is for the split unit's lists, not for the skeleton's own
  return code_ranges(values, unit.low_pc, unit.high_pc, unit.ranges, into);
}

// Sets of a header (length, version, unit's offset, address and selector sizes), padding, and (start, size) up to (0, 0).
void DwarfFile::listed_ranges(std::vector<std::pair<Unit*, std::pair<uint64_t, uint64_t>>>& into) {
  ByteReader reader(sections_.aranges);
  while (!reader.at_end()) {
    size_t start = reader.position();
    unsigned offset_size = 4;
    uint64_t length = reader.u32();
    if (length == 0xffffffff) offset_size = 8, length = reader.u64();
    if (!reader.ok() || length > reader.remaining()) return;
    size_t end = reader.position() + length;
    reader.skip(2);
    uint64_t unit_offset = read_offset(reader, offset_size);
    uint8_t address_size = reader.u8(), selector_size = reader.u8();
    auto unit = std::lower_bound(units_.begin(), units_.end(), unit_offset,
                                 [](const Unit& u, uint64_t offset) { return u.offset < offset; });
    bool known = unit != units_.end() && unit->offset == unit_offset && address_size == kAddressSize && selector_size == 0;
    constexpr size_t kTuple = 2 * kAddressSize;
    reader.skip((kTuple - (reader.position() - start) % kTuple) % kTuple);
    while (known && reader.ok() && reader.position() + kTuple <= end) {
      uint64_t address = reader.u64(), size = reader.u64();
      if (size > 0 && address + size > address) into.push_back({&*unit, {address, address + size}});
    }
    reader.seek(end);
  }
}

}  // namespace cprof::symbolize
