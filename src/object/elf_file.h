// One ELF file, read with bounds everywhere: hostile input gives an Error or an absent section, never a crash, a hang or
// unbounded memory. Sections are read with pread when asked for (never mapped: a file that shrinks is an Error) and
// decompressed (SHF_COMPRESSED zlib and zstd, .zdebug_* zlib-gnu), each bounded. 64-bit little-endian x86-64 and aarch64.
// Not thread-safe.
#pragma once

#include <elf.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cprof::object {

struct Segment {           // PT_LOAD
  uint64_t vaddr = 0, memory_size = 0, file_offset = 0, file_size = 0;
  uint32_t flags = 0;      // PF_*
};

struct Section {
  std::string name;
  uint32_t type = 0;
  uint64_t flags = 0, vaddr = 0, file_offset = 0, size = 0, entry_size = 0;
  uint32_t link = 0;
  uint32_t index = 0;      // in sections(); what section_data() goes by
};

struct Symbol {
  uint64_t address = 0, size = 0;
  std::string_view name;   // into the string table section, valid while the ElfFile lives
  uint8_t type = 0;        // STT_*
  uint8_t binding = 0;     // STB_*
  uint16_t section = 0;
};

struct DebugLink {
  std::string file_name;
  uint32_t crc = 0;
};

class ElfFile {
 public:
  // Regular files only. name is for messages.
  static Result<std::shared_ptr<ElfFile>> open(Fd fd, std::string name);
  static Result<std::shared_ptr<ElfFile>> open(const std::string& path);
  // The vdso, or a test's bytes.
  static Result<std::shared_ptr<ElfFile>> from_memory(std::vector<std::byte> bytes, std::string name);

  const std::string& name() const;
  uint16_t machine() const;       // EM_X86_64, EM_AARCH64
  uint16_t type() const;          // ET_EXEC, ET_DYN
  uint64_t entry() const;
  std::span<const Segment> segments() const;
  std::span<const Section> sections() const;
  // ".debug_x" also finds ".zdebug_x".
  const Section* find_section(std::string_view name) const;
  // Why sections() is empty although the file claims some; "" when all is well.
  const std::string& section_problem() const;
  // PT_GNU_EH_FRAME's vaddr and size, for files without section headers.
  std::optional<std::pair<uint64_t, uint64_t>> eh_frame_header_range() const;

  // Decompressed content, cached. Absent section or SHT_NOBITS: empty span. Broken or absurd: an Error.
  Result<std::span<const std::byte>> section_data(const Section& section);
  Result<std::span<const std::byte>> section_data(std::string_view name);
  // The same content without filling the cache, behind what `into` holds.
  Result<void> append_section_data(const Section& section, std::vector<std::byte>* into);
  // How long section_data() will be, from the headers; an absurd claim is an Error already here.
  Result<uint64_t> section_data_size(const Section& section) const;
  // Drops cached section bytes (unwind tables and symbol indexes are compiled, then the raw bytes go); the string tables
  // that symbols() pointed into stay.
  void drop_cached_data();

  // Bytes of the loaded image at svma, as in the file (relocations not applied, .bss zero); fails outside the segments.
  Result<void> read_at_svma(uint64_t svma, std::span<std::byte> into);
  std::optional<uint64_t> svma_to_file_offset(uint64_t svma) const;
  std::optional<uint64_t> file_offset_to_svma(uint64_t offset) const;  // through PT_LOAD, executable segments first

  // avma - svma for this file mapped at avma_start from file_offset: through the PT_LOAD that holds file_offset
  // (right also for ET_EXEC, lld and mold layouts where p_offset != p_vaddr). Two segments may share a page of the file,
  // so it matters whether the mapping is the executable one.
  std::optional<uint64_t> load_bias(uint64_t avma_start, uint64_t file_offset, bool executable = true) const;

  std::span<const std::byte> build_id();          // NT_GNU_BUILD_ID from section or PT_NOTE; empty when none
  std::optional<DebugLink> debug_link();          // .gnu_debuglink
  // Defined functions of .symtab and .dynsym (STT_FUNC, STT_GNU_IFUNC, and STT_NOTYPE in executable sections), unsorted,
  // with the duplicates that the two tables share. Without .symtab, .gnu_debugdata's and Go's own table take its place;
  // without any section headers, the table that the loader uses.
  Result<std::vector<Symbol>> symbols();
  int fd() const;                                 // -1 for from_memory
  std::span<const std::byte> memory() const;      // empty for files
  const struct stat& stat() const;

  // Came over a network: nobody here vouches for it, whoever owns the copy.
  void mark_foreign();
  bool is_foreign() const;

  ~ElfFile();

 private:
  struct Impl;
  explicit ElfFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

std::string to_hex(std::span<const std::byte> bytes);  // lower case

}  // namespace cprof::object
