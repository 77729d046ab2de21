// A line program is a state machine whose opcodes emit rows in sequences of rising addresses. The rows of one sequence
// end where its end_sequence says; between sequences there is no line. All sequences of the unit are sorted and laid
// one after the other, each closed by a row without a file.
#include "symbolize/line_table.h"

#include <dwarf.h>

#include <algorithm>

namespace cprof::symbolize {
namespace {

constexpr uint16_t kNoFile = 0xffff;

struct RawRow {
  uint64_t address = 0;
  uint32_t file = 0, line = 0;
  uint16_t column = 0;
};

struct Sequence {
  uint64_t start = 0, end = 0;
  size_t first = 0, count = 0;
};

}  // namespace

struct LineTable::Header {
  Encoding encoding;
  uint64_t end = 0;
  uint8_t min_instruction = 1, line_range = 1, opcode_base = 1;
  int8_t line_base = 0;
  std::span<const std::byte> operand_counts;  // of opcodes 1, 2, ...
};

struct LineTable::Program {
  const Header& header;
  ByteReader& reader;
  const AddressRanges& code;
  uint64_t& row_budget;
  std::vector<FileEntry>& files;

  std::vector<RawRow> rows;
  std::vector<Sequence> sequences;
  RawRow state;
  size_t sequence_start = 0;

  void reset() { state = {0, 1, 1, 0}; }
  void advance(uint64_t operations) { state.address += operations * header.min_instruction; }
  bool emit() {
    if (row_budget == 0) return false;
    row_budget--;
    if (rows.size() > sequence_start && rows.back().address == state.address) rows.back() = state;
    else rows.push_back(state);
    return true;
  }
  void end_sequence();
  void extended();
  void standard(uint8_t opcode);
  void run();
};

void LineTable::Program::end_sequence() {
  auto begin = rows.begin() + static_cast<ptrdiff_t>(sequence_start);
  auto by_address = [](const RawRow& a, const RawRow& b) { return a.address < b.address; };
  if (!std::is_sorted(begin, rows.end(), by_address)) std::stable_sort(begin, rows.end(), by_address);
  size_t count = rows.size() - sequence_start;
  bool useful = count > 0 && code.contains(begin->address) && state.address > begin->address;
  if (useful) sequences.push_back({begin->address, state.address, sequence_start, count});
  else rows.resize(sequence_start);
  sequence_start = rows.size();
  reset();
}

void LineTable::Program::extended() {
  uint64_t length = reader.uleb();
  size_t end = reader.position() + length;
  if (length == 0 || length > reader.remaining()) return reader.fail();
  switch (reader.u8()) {
    case DW_LNE_end_sequence: end_sequence(); break;
    case DW_LNE_set_address: state.address = length == 9 ? reader.u64() : length == 5 ? reader.u32() : 0; break;
    case DW_LNE_define_file: {
      FileEntry file;
      file.name = reader.cstring();
      file.directory = reader.uleb();
      files.push_back(std::move(file));
      break;
    }
    default: break;
  }
  if (reader.ok()) reader.seek(end);
}

void LineTable::Program::standard(uint8_t opcode) {
  switch (opcode) {
    case DW_LNS_copy:
      if (!emit()) reader.fail();
      return;
    case DW_LNS_advance_pc: return advance(reader.uleb());
    case DW_LNS_advance_line: state.line += static_cast<uint32_t>(reader.sleb()); return;
    case DW_LNS_set_file: state.file = static_cast<uint32_t>(std::min<uint64_t>(reader.uleb(), UINT32_MAX)); return;
    case DW_LNS_set_column: state.column = static_cast<uint16_t>(std::min<uint64_t>(reader.uleb(), 0xffff)); return;
    case DW_LNS_const_add_pc: return advance((255u - header.opcode_base) / header.line_range);
    case DW_LNS_fixed_advance_pc: state.address += reader.u16(); return;
    default: break;
  }
  auto count = static_cast<unsigned>(header.operand_counts[opcode - 1u]);
  while (count-- > 0 && reader.ok()) reader.uleb();
}

void LineTable::Program::run() {
  reset();
  while (reader.ok() && reader.position() < header.end) {
    uint8_t opcode = reader.u8();
    if (opcode >= header.opcode_base) {
      unsigned adjusted = opcode - header.opcode_base;
      advance(adjusted / header.line_range);
      state.line += static_cast<uint32_t>(header.line_base + static_cast<int>(adjusted % header.line_range));
      if (!emit()) break;
    } else if (opcode == 0) {
      extended();
    } else {
      standard(opcode);
    }
  }
}

bool LineTable::parse_header(ByteReader& reader, const ValueContext& values, Header& header) {
  uint64_t length = reader.u32();
  if (length == 0xffffffff) {
    header.encoding.offset_size = 8;
    length = reader.u64();
  }
  if (!reader.ok() || length > reader.remaining()) return false;
  header.end = reader.position() + length;
  uint16_t version = reader.u16();
  header.encoding.version = static_cast<uint8_t>(version);
  if (version < 2 || version > 5) return false;
  if (version >= 5) reader.skip(2);  // address and segment selector sizes
  uint64_t header_length = read_offset(reader, header.encoding.offset_size);
  if (!reader.ok() || header_length > header.end - std::min<uint64_t>(reader.position(), header.end)) return false;
  size_t program = reader.position() + header_length;
  header.min_instruction = reader.u8();
  if (version >= 4) reader.skip(1);  // operations per instruction: 1 on our machines
  reader.skip(1);                    // default_is_stmt
  header.line_base = static_cast<int8_t>(reader.u8());
  header.line_range = reader.u8();
  header.opcode_base = reader.u8();
  if (!reader.ok() || header.line_range == 0 || header.opcode_base == 0) return false;
  header.operand_counts = reader.bytes(header.opcode_base - 1u);
  if (version >= 5) {
    zero_based_ = true;
    if (!parse_entries(reader, values, header.encoding, true) || !parse_entries(reader, values, header.encoding, false)) return false;
  } else {
    parse_legacy_files(reader);
  }
  if (!reader.ok()) return false;
  reader.seek(program);
  return reader.ok();
}

void LineTable::parse_legacy_files(ByteReader& reader) {
  directories_.push_back(comp_dir_);
  while (reader.ok()) {
    std::string_view directory = reader.cstring();
    if (directory.empty()) break;
    directories_.push_back(directory);
  }
  while (reader.ok()) {
    FileEntry file;
    file.name = reader.cstring();
    if (file.name.empty()) break;
    file.directory = reader.uleb();
    reader.uleb();
    reader.uleb();
    files_.push_back(std::move(file));
  }
}

// DWARF 5: a list of (content, form), then the entries in that shape.
bool LineTable::parse_entries(ByteReader& reader, const ValueContext& values, Encoding encoding, bool directories) {
  std::vector<AttributeSpec> shape(reader.u8());
  for (AttributeSpec& spec : shape) {
    spec.name = static_cast<uint16_t>(reader.uleb());
    spec.form = static_cast<uint16_t>(reader.uleb());
  }
  uint64_t count = reader.uleb();
  if (!reader.ok() || count > reader.remaining()) return false;  // each takes a byte at least, or the shape is empty
  if (shape.empty()) return count == 0;
  for (uint64_t i = 0; i < count && reader.ok(); i++) {
    FileEntry entry;
    for (const AttributeSpec& spec : shape) {
      Value value = read_value(reader, spec, encoding);
      if (spec.name == DW_LNCT_path) entry.name = values.string(value);
      if (spec.name == DW_LNCT_directory_index) entry.directory = value.number;
    }
    if (directories) directories_.push_back(entry.name);
    else files_.push_back(std::move(entry));
  }
  return reader.ok();
}

std::optional<LineTable> LineTable::parse_files(const ValueContext& values, uint64_t offset, std::string_view comp_dir) {
  LineTable table;
  table.comp_dir_ = comp_dir;
  ByteReader reader(values.sections->line);
  reader.seek(offset);
  Header header;
  if (!table.parse_header(reader, values, header)) return std::nullopt;
  return table;
}

std::optional<LineTable> LineTable::parse(const ValueContext& values, uint64_t offset, std::string_view comp_dir,
                                          const AddressRanges& code, uint64_t& row_budget) {
  LineTable table;
  table.comp_dir_ = comp_dir;
  ByteReader reader(values.sections->line);
  reader.seek(offset);
  Header header;
  if (row_budget == 0 || !table.parse_header(reader, values, header)) return std::nullopt;
  row_budget -= std::min<uint64_t>(row_budget, table.files_.size() + table.directories_.size());
  Program program{header, reader, code, row_budget, table.files_, {}, {}, {}, 0};
  program.run();

  auto& sequences = program.sequences;
  std::stable_sort(sequences.begin(), sequences.end(), [](auto& a, auto& b) { return a.start < b.start; });
  table.rows_.reserve(program.rows.size() + sequences.size());
  uint64_t covered = 0;
  if (!sequences.empty()) table.base_ = sequences.front().start;
  for (const Sequence& sequence : sequences) {
    // Functions that the linker folded into one have a sequence each: the first is as good as any.
    if (sequence.start < covered || sequence.end - table.base_ > UINT32_MAX) continue;
    table.append_sequence(program, sequence.first, sequence.count);
    table.rows_.push_back({static_cast<uint32_t>(sequence.end - table.base_), 0, kNoFile, 0});
    covered = sequence.end;
  }
  return table;
}

void LineTable::append_sequence(const Program& program, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    const RawRow& row = program.rows[i];
    auto file = static_cast<uint16_t>(std::min<uint32_t>(row.file, kNoFile - 1u));
    bool same = i > first && rows_.back().file == file && rows_.back().line == row.line && rows_.back().column == row.column;
    if (!same) rows_.push_back({static_cast<uint32_t>(row.address - base_), row.line, file, row.column});
  }
}

std::optional<LineRow> LineTable::find(uint64_t address) const {
  if (rows_.empty() || address < base_ || address - base_ > UINT32_MAX) return std::nullopt;
  auto delta = static_cast<uint32_t>(address - base_);
  auto after = std::upper_bound(rows_.begin(), rows_.end(), delta, [](uint32_t d, const PackedRow& row) { return d < row.delta; });
  if (after == rows_.begin() || std::prev(after)->file == kNoFile) return std::nullopt;
  const PackedRow& row = *std::prev(after);
  return LineRow{row.file, row.line, row.column};
}

std::string_view LineTable::file(uint64_t index) {
  if (!zero_based_ && index-- == 0) return {};
  if (index >= files_.size()) return {};
  FileEntry& entry = files_[index];
  if (entry.name.starts_with('/')) return entry.name;
  if (!entry.joined.empty()) return entry.joined;
  std::string_view directory = entry.directory < directories_.size() ? directories_[entry.directory] : std::string_view{};
  if (!directory.starts_with('/') && !comp_dir_.empty() && directory != comp_dir_) {
    entry.joined.append(comp_dir_).append("/");
  }
  if (!directory.empty()) entry.joined.append(directory).append("/");
  return entry.joined.append(entry.name);
}

}  // namespace cprof::symbolize
