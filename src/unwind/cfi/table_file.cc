#include "unwind/cfi/table_file.h"

#include <algorithm>

#include "unwind/cfi/content_hash.h"

namespace cprof::unwind {
namespace {

// Little-endian, as this file never leaves the machine. Arrays follow in the header's order.
struct Header {
  char magic[8] = {'c', 'p', 'r', 'o', 'f', 'U', 'T', '\n'};
  uint32_t version = 4;          // raise when rows, rules or the compiler's decisions change
  uint32_t elf_machine = 0;
  uint64_t input_hash = 0;
  uint64_t payload_hash = 0;
  uint64_t base = 0;
  uint32_t rows = 0, pages = 0, rules = 0, fdes = 0;
  CompileStats stats;
};
static_assert(sizeof(Header) == 88 && sizeof(FdeRange) == 12);

template <typename T>
void append(std::vector<std::byte>& bytes, const std::vector<T>& values) {
  auto raw = std::as_bytes(std::span(values));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

template <typename T>
bool take(std::span<const std::byte>& bytes, size_t count, std::vector<T>& values) {
  if (bytes.size() / sizeof(T) < count) return false;
  values.resize(count);
  if (count) memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
  return true;
}

uint64_t hash_of(std::span<const std::byte> bytes) {
  ContentHash hash;
  hash.add(bytes);
  return hash.value();
}

bool page_is_sound(std::span<const cp_row> rows, size_t rule_count) {
  if (rows.empty()) return true;
  if (CP_ROW_PC(rows.front()) != 0) return false;
  for (size_t i = 0; i < rows.size(); i++) {
    if (CP_ROW_RULE(rows[i]) >= rule_count) return false;
    if (i > 0 && CP_ROW_PC(rows[i]) <= CP_ROW_PC(rows[i - 1])) return false;
  }
  return true;
}

bool rows_are_sound(const RowSet& set) {
  if (set.pages.empty() || set.rules.empty() || set.pages.back() != set.rows.size() || set.base % 4096) return false;
  if (set.rules.front().cfa_kind != CP_CFA_NONE) return false;
  for (size_t page = 0; page + 1 < set.pages.size(); page++) {
    uint32_t first = set.pages[page], end = set.pages[page + 1];
    if (first > end || end > set.rows.size()) return false;
    if (!page_is_sound(std::span(set.rows).subspan(first, end - first), set.rules.size())) return false;
  }
  return true;
}

bool fdes_are_sound(const std::vector<FdeRange>& fdes, const std::vector<CfiSource>& sources) {
  uint64_t end = 0;
  for (const FdeRange& fde : fdes) {
    if (fde.start < end || fde.source() >= sources.size() || fde.offset() >= sources[fde.source()].bytes.size()) return false;
    end = uint64_t{fde.start} + fde.size;
  }
  return true;
}

}  // namespace

uint64_t hash_of_input(const ModuleInput& input) {
  ContentHash hash;
  hash.add(input.compile.machine->elf_machine);
  hash.add(input.compile.entry);
  for (auto [start, end] : input.compile.text) hash.add(start), hash.add(end);
  static_assert(std::has_unique_object_representations_v<cp_rule>, "no padding goes into the hash");
  for (const KnownCode& known : input.compile.known_code)
    hash.add(known.start), hash.add(known.end), hash.add(std::as_bytes(std::span(&known.rule, 1)));
  for (const CfiSource& source : input.sources) {
    hash.add(source.svma);
    hash.add(source.bytes);
  }
  return hash.value();
}

std::vector<std::byte> write_table(const ModuleTable::Impl& table, uint64_t input_hash) {
  const RowSet& set = table.rows;
  Header header;
  header.elf_machine = table.machine->elf_machine;
  header.input_hash = input_hash;
  header.base = set.base;
  header.rows = static_cast<uint32_t>(set.rows.size());
  header.pages = static_cast<uint32_t>(set.pages.size());
  header.rules = static_cast<uint32_t>(set.rules.size());
  header.fdes = static_cast<uint32_t>(table.fdes.size());
  header.stats = table.stats;
  std::vector<std::byte> bytes(sizeof(header));
  append(bytes, set.rows);
  append(bytes, set.pages);
  append(bytes, set.rules);
  append(bytes, table.fdes);
  header.payload_hash = hash_of(std::span(bytes).subspan(sizeof(header)));
  memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

std::unique_ptr<ModuleTable::Impl> read_table(std::span<const std::byte> bytes, uint64_t input_hash, ModuleInput& input) {
  const Header expected;
  Header header;
  if (bytes.size() < sizeof(header)) return nullptr;
  memcpy(&header, bytes.data(), sizeof(header));
  bytes = bytes.subspan(sizeof(header));
  if (memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0 || header.version != expected.version) return nullptr;
  if (header.elf_machine != input.compile.machine->elf_machine || header.input_hash != input_hash) return nullptr;
  if (header.payload_hash != hash_of(bytes)) return nullptr;

  auto impl = std::make_unique<ModuleTable::Impl>();
  impl->machine = input.compile.machine;
  impl->stats = header.stats;
  impl->rows.base = header.base;
  if (!take(bytes, header.rows, impl->rows.rows) || !take(bytes, header.pages, impl->rows.pages) ||
      !take(bytes, header.rules, impl->rows.rules) || !take(bytes, header.fdes, impl->fdes) || !bytes.empty())
    return nullptr;
  if (!rows_are_sound(impl->rows) || !fdes_are_sound(impl->fdes, input.sources)) return nullptr;
  impl->sources = std::move(input.sources);
  impl->bind();
  return impl;
}

}  // namespace cprof::unwind
