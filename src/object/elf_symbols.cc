#include "object/elf_symbols.h"

#include <algorithm>
#include <cstring>

namespace cprof::object {
namespace {

// Names may share their ends, as linkers make them, but not without limit: a hostile table of one endless name would cost
// the square of the file's size.
class NameTable {
 public:
  explicit NameTable(std::span<const std::byte> bytes)
      : bytes_(bytes), budget_(uint64_t{bytes.size()} * 16 + (64 << 20)) {}

  // "" for a name outside the table or without an end.
  std::string_view at(uint32_t offset) {
    if (offset >= bytes_.size() || exhausted()) return {};
    const char* start = reinterpret_cast<const char*>(bytes_.data()) + offset;
    size_t room = bytes_.size() - offset;
    const void* end = memchr(start, 0, std::min<uint64_t>(room, budget_));
    size_t length = end ? static_cast<size_t>(static_cast<const char*>(end) - start) : room;
    budget_ -= std::min<uint64_t>(budget_, length + 1);
    return end ? std::string_view(start, length) : std::string_view();
  }
  bool exhausted() const { return budget_ == 0; }

 private:
  std::span<const std::byte> bytes_;
  uint64_t budget_;
};

bool is_function(const Elf64_Sym& symbol, std::span<const Section> sections) {
  if (symbol.st_shndx == SHN_UNDEF) return false;
  uint8_t type = ELF64_ST_TYPE(symbol.st_info);
  if (type == STT_FUNC || type == STT_GNU_IFUNC) return true;
  if (type != STT_NOTYPE || symbol.st_shndx >= sections.size()) return false;
  return sections[symbol.st_shndx].flags & SHF_EXECINSTR;
}

// $x, $d, $x.12: code and data within a section (ELF for the Arm 64-bit Architecture, "Mapping symbols"). Swift's
// functions begin with a dollar too.
bool is_mapping_symbol(std::string_view name) {
  const bool is_kind = name.size() >= 2 && name[0] == '$' && (name[1] == 'x' || name[1] == 'd');
  return is_kind && (name.size() == 2 || name[2] == '.');
}

}  // namespace

Result<void> append_functions(const SymbolTable& table, const std::string& name, std::vector<Symbol>* into) {
  NameTable names(table.names);
  for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.rows.size(); at += sizeof(Elf64_Sym)) {
    Elf64_Sym row;
    memcpy(&row, table.rows.data() + at, sizeof row);
    if (!is_function(row, table.sections)) continue;
    std::string_view text = names.at(row.st_name);
    if (text.empty() || (table.machine == EM_AARCH64 && is_mapping_symbol(text))) continue;
    into->push_back({row.st_value, row.st_size, text, static_cast<uint8_t>(ELF64_ST_TYPE(row.st_info)),
                     static_cast<uint8_t>(ELF64_ST_BIND(row.st_info)), row.st_shndx});
  }
  if (names.exhausted()) return fail(name + ": the names overlap without end");
  return {};
}

}  // namespace cprof::object
