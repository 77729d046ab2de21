// Nothing says how many symbols there are but the hash tables that find them: DT_HASH has a chain entry for each, and in
// DT_GNU_HASH the last one ends the chain of the bucket that begins last. Generic ABI, "Dynamic Section" and "Hash Table".
#include "object/dynamic_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cprof::object {
namespace {

constexpr uint64_t kMaxDynamicBytes = 1 << 20;

struct DynamicEntries {
  uint64_t symbols = 0, symbol_size = sizeof(Elf64_Sym), names = 0, names_size = 0, hash = 0, gnu_hash = 0;
};

class DynamicReader {
 public:
  explicit DynamicReader(ElfFile& file) : file_(file) {}

  Result<std::optional<DynamicSymbols>> read(uint64_t vaddr, uint64_t size) {
    auto bytes = TRY(at(vaddr, std::min(size, kMaxDynamicBytes)));
    const DynamicEntries entries = parse(bytes);
    if (!entries.symbols || !entries.names) return std::nullopt;
    if (entries.symbol_size != sizeof(Elf64_Sym)) return fail(file_.name() + ": dynamic symbols of an unknown size");
    const uint64_t count = TRY(symbol_count(entries));
    DynamicSymbols result;
    result.rows = TRY(at(entries.symbols, count * sizeof(Elf64_Sym)));
    result.names = TRY(at(entries.names, entries.names_size));
    return result;
  }

 private:
  // What is left of the segment there, but no more than the file has; bounds what a table may claim.
  uint64_t room_at(uint64_t vaddr) const {
    const uint64_t file_bytes = file_.fd() >= 0 ? static_cast<uint64_t>(file_.stat().st_size) : file_.memory().size();
    for (const Segment& s : file_.segments())
      if (vaddr >= s.vaddr && vaddr - s.vaddr < s.file_size) return std::min(s.file_size - (vaddr - s.vaddr), file_bytes);
    return 0;
  }

  Result<std::vector<std::byte>> at(uint64_t vaddr, uint64_t size) {
    if (size > room_at(vaddr))
      return fail(fmt::format("{}: {} bytes of dynamic information at {:#x} lie outside the file", file_.name(), size, vaddr));
    std::vector<std::byte> bytes(size);
    TRY(file_.read_at_svma(vaddr, bytes));
    return bytes;
  }

  template <typename T>
  Result<T> value_at(uint64_t vaddr) {
    T value;
    auto bytes = TRY(at(vaddr, sizeof value));
    memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  static DynamicEntries parse(std::span<const std::byte> bytes) {
    DynamicEntries entries;
    for (size_t i = 0; i + sizeof(Elf64_Dyn) <= bytes.size(); i += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      memcpy(&entry, bytes.data() + i, sizeof entry);
      switch (entry.d_tag) {
        case DT_NULL: return entries;
        case DT_SYMTAB: entries.symbols = entry.d_un.d_ptr; break;
        case DT_SYMENT: entries.symbol_size = entry.d_un.d_val; break;
        case DT_STRTAB: entries.names = entry.d_un.d_ptr; break;
        case DT_STRSZ: entries.names_size = entry.d_un.d_val; break;
        case DT_HASH: entries.hash = entry.d_un.d_ptr; break;
        case DT_GNU_HASH: entries.gnu_hash = entry.d_un.d_ptr; break;
        default: break;
      }
    }
    return entries;
  }

  Result<uint64_t> symbol_count(const DynamicEntries& entries) {
    if (entries.gnu_hash) return count_by_gnu_hash(entries.gnu_hash);
    if (entries.hash) return TRY(value_at<uint32_t>(entries.hash + 4));  // nchain
    return fail(file_.name() + ": its dynamic symbols have no hash table, so their number is not known");
  }

  Result<uint64_t> count_by_gnu_hash(uint64_t table) {
    struct {
      uint32_t buckets, first_symbol, bloom_words, bloom_shift;
    } header;
    auto start = TRY(at(table, sizeof header));
    memcpy(&header, start.data(), sizeof header);
    const uint64_t buckets_at = table + sizeof header + uint64_t{header.bloom_words} * 8;
    auto buckets = TRY(at(buckets_at, uint64_t{header.buckets} * 4));
    uint32_t last = 0;
    for (size_t i = 0; i < buckets.size(); i += 4) {
      uint32_t bucket;
      memcpy(&bucket, buckets.data() + i, sizeof bucket);
      last = std::max(last, bucket);
    }
    if (last < header.first_symbol) return header.first_symbol;  // none is defined
    const uint64_t chains_at = buckets_at + buckets.size();
    const uint64_t chain_at = chains_at + uint64_t{last - header.first_symbol} * 4;
    auto chain = TRY(at(chain_at, room_at(chain_at) & ~uint64_t{3}));
    for (size_t i = 0; i < chain.size(); i += 4) {
      uint32_t hash;
      memcpy(&hash, chain.data() + i, sizeof hash);
      if (hash & 1) return uint64_t{last} + i / 4 + 1;
    }
    return fail(file_.name() + ": the hash table of its dynamic symbols has no end");
  }

  ElfFile& file_;
};

}  // namespace

Result<std::optional<DynamicSymbols>> read_dynamic_symbols(ElfFile& file, std::span<const Elf64_Phdr> program_headers) {
  for (const Elf64_Phdr& row : program_headers)
    if (row.p_type == PT_DYNAMIC) return DynamicReader(file).read(row.p_vaddr, row.p_filesz);
  return std::nullopt;
}

}  // namespace cprof::object
