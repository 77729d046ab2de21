// The header says the version and where its parts lie; one part is a row a function: where it begins, and where its
// record is. Since Go 1.18 addresses count from the text's start, which only the runtime's own description of the
// program knows (its moduledata): found as the place in writable memory that points to this table. In a
// position-independent program that pointer is a relocation. Go's internal/abi/symtab.go and runtime/symtab.go.
#include "object/go_table.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"

namespace cprof::object {
namespace {

enum Magic : uint32_t { kGo12 = 0xfffffffb, kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1 };
enum FunctionFlag : uint8_t { kTopFrame = 1, kWritesStackPointer = 2 };

constexpr uint64_t kTextInModuleData = 176;  // its own address is the first field
constexpr uint64_t kMaxScannedSection = 256u << 20;
constexpr size_t kMaxPlaces = 64;  // that may be the runtime's description

struct Layout {
  uint32_t magic = 0;
  uint8_t quantum = 1;
  uint64_t count = 0, text = 0;
  uint64_t names = 0, names_end = 0, depths = 0, depths_end = 0, functions = 0;
  bool is_relative() const { return magic == kGo118 || magic == kGo120; }
};

const Section* go_section(const ElfFile& file) {
  const Section* plain = file.find_section(".gopclntab");
  return plain ? plain : file.find_section(".data.rel.ro.gopclntab");
}

std::optional<Layout> read_layout(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  Layout layout{.magic = reader.u32()};
  reader.skip(2);
  layout.quantum = reader.u8();
  const uint8_t address_bytes = reader.u8();
  layout.count = reader.u64();
  layout.names_end = layout.depths_end = bytes.size();
  if (!reader.ok() || address_bytes != 8) return std::nullopt;
  if (layout.magic == kGo12) return layout;
  if (layout.magic != kGo116 && !layout.is_relative()) return std::nullopt;
  reader.u64();  // files
  if (layout.is_relative()) layout.text = reader.u64();
  layout.names = reader.u64();
  layout.names_end = reader.u64();
  reader.u64();  // files' names
  layout.depths = reader.u64();
  layout.functions = layout.depths_end = reader.u64();
  return reader.ok() ? std::optional(layout) : std::nullopt;
}

bool is_text(const ElfFile& file, uint64_t start, uint64_t end) {
  return start < end &&
         std::ranges::any_of(
             file.segments(),
             [&](const Segment& s) { return (s.flags & PF_X) && start >= s.vaddr && end - s.vaddr <= s.memory_size; });
}

// The text's start by an image's own words, for a program that is never moved.
std::optional<uint64_t> text_by_pointer(ElfFile& file, uint64_t table) {
  size_t places = 0;
  for (const Section& section : file.sections()) {
    const bool may_hold =
        (section.flags & SHF_WRITE) && section.type == SHT_PROGBITS && section.size <= kMaxScannedSection;
    auto bytes = may_hold ? file.section_data(section) : std::span<const std::byte>();
    for (size_t at = 0; bytes && at + kTextInModuleData + sizeof table <= bytes->size(); at += sizeof table) {
      if (memcmp(bytes->data() + at, &table, sizeof table) != 0) continue;
      uint64_t text;
      memcpy(&text, bytes->data() + at + kTextInModuleData, sizeof text);
      if (is_text(file, text, text + 1)) return text;
      if (++places == kMaxPlaces) return std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<Elf64_Rela> relative_relocations(ElfFile& file) {
  std::vector<Elf64_Rela> rows;
  auto bytes = file.section_data(".rela.dyn");
  if (!bytes || bytes->size() > kMaxScannedSection) return rows;
  const uint32_t relative = file.machine() == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
  for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes->size(); at += sizeof(Elf64_Rela)) {
    Elf64_Rela row;
    memcpy(&row, bytes->data() + at, sizeof row);
    if (ELF64_R_TYPE(row.r_info) == relative) rows.push_back(row);
  }
  return rows;
}

std::optional<uint64_t> text_by_relocation(ElfFile& file, uint64_t table) {
  const std::vector<Elf64_Rela> rows = relative_relocations(file);
  std::vector<uint64_t> wanted;
  for (const Elf64_Rela& row : rows)
    if (static_cast<uint64_t>(row.r_addend) == table && wanted.size() < kMaxPlaces)
      wanted.push_back(row.r_offset + kTextInModuleData);
  for (const Elf64_Rela& row : rows) {
    const auto text = static_cast<uint64_t>(row.r_addend);
    if (std::ranges::find(wanted, row.r_offset) != wanted.end() && is_text(file, text, text + 1)) return text;
  }
  return std::nullopt;
}

uint64_t text_start(ElfFile& file, const Section& section, const Layout& layout) {
  if (auto text = text_by_pointer(file, section.vaddr)) return *text;
  if (auto text = text_by_relocation(file, section.vaddr)) return *text;
  if (layout.text) return layout.text;
  const Section* text = file.find_section(".text");
  return text ? text->vaddr : 0;
}

class TableReader {
 public:
  TableReader(ElfFile& file, std::span<const std::byte> bytes, const Layout& layout, uint64_t text)
      : file_(file), bytes_(bytes), layout_(layout), text_(layout.is_relative() ? text : 0) {}

  Result<GoTable> read() {
    const uint64_t first = layout_.magic == kGo12 ? kGo12Rows : layout_.functions;
    const uint64_t row_bytes = 2 * word();
    const bool fits =
        first <= bytes_.size() && layout_.count < (bytes_.size() - first) / row_bytes && parts_are_inside();
    if (!fits) return fail(file_.name() + ": Go's function table has more rows than bytes");
    GoTable table;
    table.quantum = layout_.quantum;
    ByteReader rows(bytes_);
    rows.seek(first);
    uint64_t start = text_ + value(rows);
    for (uint64_t i = 0; i < layout_.count; i++) {
      const uint64_t record = value(rows), end = text_ + value(rows);
      if (!is_text(file_, start, end))
        return fail(fmt::format("{}: Go's function table is broken at row {}", file_.name(), i));
      table.functions.push_back(function_at(start, end, layout_.functions + record));
      start = end;
    }
    const auto names = bytes_.subspan(layout_.names, layout_.names_end - layout_.names);
    const auto depths = bytes_.subspan(layout_.depths, layout_.depths_end - layout_.depths);
    table.names.assign(names.begin(), names.end());
    table.depths.assign(depths.begin(), depths.end());
    return table;
  }

 private:
  static constexpr uint64_t kGo12Rows = 16;

  uint64_t word() const { return layout_.is_relative() ? 4 : 8; }
  uint64_t value(ByteReader& reader) const { return layout_.is_relative() ? reader.u32() : reader.u64(); }

  bool parts_are_inside() const {
    return layout_.names <= layout_.names_end && layout_.names_end <= bytes_.size() &&
           layout_.depths <= layout_.depths_end && layout_.depths_end <= bytes_.size();
  }

  // entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, then cuOffset (1.16), startLine (1.20), funcID, flag.
  GoFunction function_at(uint64_t start, uint64_t end, uint64_t record) const {
    GoFunction function{.start = start, .end = end};
    ByteReader reader(bytes_);
    reader.seek(record);
    reader.skip(word());
    function.name = reader.u32();
    reader.skip(8);
    const uint32_t depths = reader.u32();
    if (layout_.magic == kGo12) return function;
    reader.skip(layout_.magic == kGo120 ? 21 : 17);
    const uint8_t flags = reader.u8();
    if (!reader.ok()) return function;
    function.depths = depths;
    function.is_root = flags & kTopFrame;
    function.moves_stack = flags & kWritesStackPointer;
    return function;
  }

  ElfFile& file_;
  std::span<const std::byte> bytes_;
  const Layout& layout_;
  uint64_t text_;
};

}  // namespace

Result<std::optional<GoTable>> read_go_table(ElfFile& file) {
  const Section* section = go_section(file);
  if (!section || section->type == SHT_NOBITS) return std::nullopt;
  auto bytes = TRY(file.section_data(*section));
  const auto layout = read_layout(bytes);
  if (!layout) return std::nullopt;
  const uint64_t text = layout->is_relative() ? text_start(file, *section, *layout) : 0;
  return TRY(TableReader(file, bytes, *layout, text).read());
}

// Pairs of differences: of the depth (zigzag, from -1) and of the pc it holds up to. A depth that does not change ends
// it.
bool for_each_go_depth(const GoTable& table, const GoFunction& function,
                       const std::function<void(uint64_t start, uint64_t end, int32_t depth)>& visit) {
  ByteReader reader(table.depths);
  reader.seek(function.depths);
  uint64_t pc = function.start;
  int64_t depth = -1;
  for (bool is_first = true; pc < function.end; is_first = false) {
    const uint64_t change = reader.uleb();
    if (reader.ok() && change == 0 && !is_first) return true;
    depth += change & 1 ? ~static_cast<int64_t>(change >> 1) : static_cast<int64_t>(change >> 1);
    const uint64_t steps = reader.uleb();
    const bool is_sound = reader.ok() && steps != 0 && steps <= function.end - pc && depth >= 0 && depth <= INT32_MAX;
    if (!is_sound || steps * table.quantum > function.end - pc) return false;
    visit(pc, pc + steps * table.quantum, static_cast<int32_t>(depth));
    pc += steps * table.quantum;
  }
  return true;
}

}  // namespace cprof::object
