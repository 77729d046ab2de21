#include "object/elf_headers.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "object/buffer.h"

namespace cprof::object {
namespace {

// Far above any linked file; they bound the memory that a hostile header can ask for.
constexpr uint64_t kMaxProgramHeaders = 65536;
constexpr uint64_t kMaxSections = 262144;
constexpr uint64_t kMaxNameTableBytes = 64 << 20;
constexpr size_t kMaxSectionName = 255;

std::optional<std::string> why_unsupported(const Elf64_Ehdr& header) {
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "not an ELF file";
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "not a 64-bit ELF file";
  if (header.e_ident[EI_DATA] != ELFDATA2LSB) return "not a little-endian ELF file";
  if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64)
    return fmt::format("ELF machine {} is neither x86-64 nor aarch64", header.e_machine);
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return fmt::format("ELF type {} is neither an executable nor a shared library", header.e_type);
  return std::nullopt;
}

Result<Elf64_Ehdr> read_header(const ByteSource& source) {
  Elf64_Ehdr header;
  if (source.size() < EI_NIDENT) return fail(source.name() + ": not an ELF file (too short)");
  // The identification alone first: a 32-bit file may be shorter than a 64-bit header.
  size_t length = std::min<uint64_t>(source.size(), sizeof header);
  memset(&header, 0, sizeof header);
  TRY(source.read(0, {reinterpret_cast<std::byte*>(&header), length}));
  if (auto reason = why_unsupported(header)) return fail(source.name() + ": " + *reason);
  if (length < sizeof header) return fail(source.name() + ": truncated in the ELF header");
  return header;
}

// Section 0 holds the counts that do not fit the header's 16 bits.
Result<Elf64_Shdr> read_section_zero(const ByteSource& source, const Elf64_Ehdr& header) {
  Elf64_Shdr zero;
  TRY(source.read(header.e_shoff, {reinterpret_cast<std::byte*>(&zero), sizeof zero}));
  return zero;
}

template <typename Row>
Result<std::vector<Row>> read_table(const ByteSource& source, uint64_t offset, uint64_t count, const char* what) {
  if (!source.contains(offset, count * sizeof(Row)))
    return fail(fmt::format("{}: {} {} at offset {} do not fit the file's {} bytes", source.name(), count, what, offset,
                            source.size()));
  std::vector<Row> rows(count);
  TRY(source.read(offset, std::as_writable_bytes(std::span(rows))));
  return rows;
}

Result<std::vector<Elf64_Phdr>> read_program_headers(const ByteSource& source, const Elf64_Ehdr& header) {
  uint64_t count = header.e_phnum;
  if (count == 0 || header.e_phoff == 0) return std::vector<Elf64_Phdr>();
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    return fail(fmt::format("{}: program headers of {} bytes, not {}", source.name(), header.e_phentsize,
                            sizeof(Elf64_Phdr)));
  if (count == PN_XNUM && header.e_shoff != 0) count = TRY(read_section_zero(source, header)).sh_info;
  if (count > kMaxProgramHeaders)
    return fail(fmt::format("{}: claims {} program headers", source.name(), count));
  return read_table<Elf64_Phdr>(source, header.e_phoff, count, "program headers");
}

Result<std::vector<Segment>> loaded_segments(const ByteSource& source, std::span<const Elf64_Phdr> rows) {
  std::vector<Segment> segments;
  for (const Elf64_Phdr& row : rows) {
    if (row.p_type != PT_LOAD) continue;
    bool wraps = row.p_vaddr + row.p_memsz < row.p_vaddr || row.p_offset + row.p_filesz < row.p_offset;
    if (wraps) return fail(fmt::format("{}: a segment at {:#x} wraps around", source.name(), row.p_vaddr));
    segments.push_back({row.p_vaddr, row.p_memsz, row.p_offset, row.p_filesz, row.p_flags});
  }
  return segments;
}

Result<Buffer> read_section_names(const ByteSource& source, std::span<const Elf64_Shdr> rows, uint32_t index) {
  Buffer names;
  if (index == SHN_UNDEF) return names;
  if (index >= rows.size() || rows[index].sh_type == SHT_NOBITS)
    return fail(source.name() + ": the section of section names does not exist");
  const Elf64_Shdr& row = rows[index];
  if (row.sh_size > kMaxNameTableBytes || !source.contains(row.sh_offset, row.sh_size))
    return fail(source.name() + ": section names lie outside the file");
  if (!names.resize(row.sh_size)) return fail(source.name() + ": out of memory for section names", ENOMEM);
  TRY(source.read(row.sh_offset, names.span()));
  return names;
}

std::string section_name(const Buffer& names, uint32_t offset) {
  if (offset >= names.size()) return {};
  const char* start = reinterpret_cast<const char*>(names.span().data()) + offset;
  return std::string(start, strnlen(start, std::min(names.size() - offset, kMaxSectionName)));
}

Result<std::vector<Section>> read_sections(const ByteSource& source, const Elf64_Ehdr& header) {
  std::vector<Section> sections;
  if (header.e_shoff == 0) return sections;
  uint64_t count = header.e_shnum;
  uint32_t name_index = header.e_shstrndx;
  if (count != 0 && header.e_shentsize != sizeof(Elf64_Shdr))
    return fail(fmt::format("{}: section headers of {} bytes, not {}", source.name(), header.e_shentsize,
                            sizeof(Elf64_Shdr)));
  if (count == 0 || name_index == SHN_XINDEX) {
    Elf64_Shdr zero = TRY(read_section_zero(source, header));
    if (count == 0) count = zero.sh_size;
    if (name_index == SHN_XINDEX) name_index = zero.sh_link;
  }
  if (count > kMaxSections) return fail(fmt::format("{}: claims {} sections", source.name(), count));
  auto rows = TRY(read_table<Elf64_Shdr>(source, header.e_shoff, count, "section headers"));
  Buffer names = TRY(read_section_names(source, rows, name_index));
  sections.reserve(rows.size());
  for (const Elf64_Shdr& row : rows) {
    uint32_t index = static_cast<uint32_t>(sections.size());
    sections.push_back({section_name(names, row.sh_name), row.sh_type, row.sh_flags, row.sh_addr, row.sh_offset,
                        row.sh_size, row.sh_entsize, row.sh_link, index});
  }
  return sections;
}

}  // namespace

Result<ElfHeaders> read_elf_headers(const ByteSource& source) {
  ElfHeaders headers;
  headers.header = TRY(read_header(source));
  headers.program_headers = TRY(read_program_headers(source, headers.header));
  headers.segments = TRY(loaded_segments(source, headers.program_headers));
  auto sections = read_sections(source, headers.header);
  if (sections)
    headers.sections = std::move(*sections);
  else
    headers.section_problem = std::move(sections.error().message);
  return headers;
}

}  // namespace cprof::object
