// The units of one file's DWARF: the main or debug file, a .dwo, or dwz's shared file. Called by DwarfModule. Holds the
// sections' bytes; root DIEs and abbreviations are read when asked for.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "object/elf_file.h"
#include "symbolize/dwarf_reader.h"

namespace cprof::symbolize {

struct Unit {
  uint64_t offset = 0, first_die = 0, end = 0, abbrev_offset = 0;
  uint64_t dwo_id = 0;
  uint8_t type = 0;  // DW_UT_*
  ValueContext values;

  // From the root DIE, once read_root() said true.
  enum class Root : uint8_t { kUnread, kRead, kBroken } root_state = Root::kUnread;
  std::string_view name, comp_dir, dwo_name;
  Value low_pc, high_pc, ranges, line_offset;
  uint16_t language = 0;

  std::shared_ptr<const AbbreviationTable> abbreviations;

  // The offset in .debug_info of the same file that a reference means; nothing for other kinds.
  std::optional<uint64_t> reference(const Value& value) const;
};

class DwarfFile {
 public:
  // suffix ".dwo" for split files, else "". Null: no debug info, or it cannot be read (then counted).
  // Nobody else may drop the file's cached sections.
  static std::unique_ptr<DwarfFile> load(std::shared_ptr<object::ElfFile> file, std::string_view suffix,
                                         Diagnostics& diagnostics);
  // The same from given parts of the file's sections: one unit of a package.
  static std::unique_ptr<DwarfFile> from_sections(std::shared_ptr<object::ElfFile> file, const DwarfSections& sections);
  // Of all sections with the suffix; what cannot be read is counted and left empty.
  static DwarfSections read_sections(object::ElfFile& file, std::string_view suffix, Diagnostics& diagnostics);

  const std::string& name() const { return elf_->name(); }
  const DwarfSections& sections() const { return sections_; }
  std::vector<Unit>& units() { return units_; }
  Unit* unit_at(uint64_t info_offset);  // the one that contains it

  void set_supplementary(const DwarfFile* file);
  // A .dwo takes its addresses (and GNU range lists) from the file that it was split from.
  void adopt_skeleton(const Unit& skeleton, const DwarfSections& main);

  bool read_root(Unit& unit);
  const AbbreviationTable& abbreviations(Unit& unit);

  // [start, end) of a DIE's low_pc/high_pc or ranges, appended; false: broken.
  bool code_ranges(const ValueContext& values, const Value& low, const Value& high, const Value& ranges,
                   std::vector<std::pair<uint64_t, uint64_t>>& into);
  // Of the unit as a whole, after read_root().
  bool unit_ranges(const Unit& unit, std::vector<std::pair<uint64_t, uint64_t>>& into);
  // All that .debug_aranges lists, in its order.
  void listed_ranges(std::vector<std::pair<Unit*, std::pair<uint64_t, uint64_t>>>& into);

 private:
  DwarfFile() = default;
  bool join_info_sections(std::string_view suffix);
  bool prepare();
  void parse_units();
  bool parse_unit(ByteReader& reader, Unit& unit) const;
  bool take_root_attributes(Unit& unit, ByteReader& reader, const AbbreviationTable& table, const Abbreviation& root);

  std::shared_ptr<object::ElfFile> elf_;
  DwarfSections sections_;
  std::vector<std::byte> joined_info_;  // of a .dwo with a section for each type unit
  std::vector<Unit> units_;
  std::map<std::pair<uint64_t, uint8_t>, std::shared_ptr<const AbbreviationTable>> tables_;  // offset, offset size
  uint64_t abbreviation_budget_ = 0, range_budget_ = 0;
};

}  // namespace cprof::symbolize
