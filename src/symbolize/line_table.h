// One unit's line numbers: the .debug_line program (DWARF 2 to 5) run once into rows sorted by address, 12 bytes each.
// Called by DwarfModule. Sequences that are not about code of this file are left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "symbolize/address_ranges.h"
#include "symbolize/dwarf_reader.h"

namespace cprof::symbolize {

struct LineRow {
  uint32_t file = 0, line = 0;
  uint16_t column = 0;
};

class LineTable {
 public:
  // values: of the unit that owns the program. Nothing when the header is broken; a program that breaks off keeps its
  // rows so far. row_budget bounds the rows of all units together (many may name one program).
  static std::optional<LineTable> parse(const ValueContext& values, uint64_t offset, std::string_view comp_dir,
                                        const AddressRanges& code, uint64_t& row_budget);
  // The file names only.
  static std::optional<LineTable> parse_files(const ValueContext& values, uint64_t offset, std::string_view comp_dir);

  std::optional<LineRow> find(uint64_t address) const;
  // Joined with its directory; "" for an index that is none. Valid while this table lives.
  std::string_view file(uint64_t index);

 private:
  struct PackedRow {
    uint32_t delta = 0, line = 0;
    uint16_t file = 0, column = 0;
  };
  struct FileEntry {
    std::string_view name;
    uint64_t directory = 0;
    std::string joined;
  };
  struct Header;
  struct Program;

  bool parse_header(ByteReader& reader, const ValueContext& values, Header& header);
  void parse_legacy_files(ByteReader& reader);
  bool parse_entries(ByteReader& reader, const ValueContext& values, Encoding encoding, bool directories);
  void append_sequence(const Program& program, size_t first, size_t count);

  uint64_t base_ = 0;
  std::vector<PackedRow> rows_;
  std::vector<FileEntry> files_;
  std::vector<std::string_view> directories_;
  std::string_view comp_dir_;
  bool zero_based_ = false;
};

}  // namespace cprof::symbolize
