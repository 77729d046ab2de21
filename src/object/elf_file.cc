// An ElfFile is its checked headers (elf_headers), a source of bytes (byte_source), and a cache of section contents that
// is filled on demand. All address arithmetic goes through the PT_LOAD segments, never through sections: that is what the
// kernel maps. Three kinds of address meet here: svma (in the ELF file's own view), file offset, and avma (in a process);
// avma = svma + load bias.
#include "object/elf_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstring>

#include "base/byte_reader.h"
#include "object/buffer.h"
#include "object/byte_source.h"
#include "object/decompress.h"
#include "object/dynamic_symbols.h"
#include "object/elf_headers.h"
#include "object/elf_symbols.h"
#include "object/go_table.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2  // glibc 2.36's elf.h does not have it yet
#endif

namespace cprof::object {
namespace {

constexpr uint64_t kMaxSectionBytes = uint64_t{1} << 30;
constexpr uint64_t kMaxDebugSectionBytes = uint64_t{4} << 30;
constexpr uint64_t kMaxNoteBytes = 1 << 20;
constexpr unsigned kMaxNotes = 64;  // looked into for a build-id
constexpr size_t kMaxBuildId = 64;
constexpr size_t kZdebugHeader = 12;  // "ZLIB", then the unpacked size, big-endian

bool is_debug_name(std::string_view name) { return name.starts_with(".debug_") || name.starts_with(".zdebug_"); }

struct PackedHeader {
  Compression kind = Compression::kZlib;
  uint64_t unpacked_size = 0;
  size_t length = 0;  // of the header itself
};

// How a section is compressed, in either convention, from its first bytes; nothing when it is stored plain.
Result<std::optional<PackedHeader>> packed_header(const Section& section, std::span<const std::byte> start,
                                                  const std::string& name) {
  ByteReader reader(start);
  if (section.flags & SHF_COMPRESSED) {
    uint32_t kind = reader.u32();
    reader.skip(4);
    uint64_t size = reader.u64();
    reader.skip(8);
    if (!reader.ok()) return fail(name + ": too short for a compressed section");
    if (kind != ELFCOMPRESS_ZLIB && kind != ELFCOMPRESS_ZSTD)
      return fail(fmt::format("{}: unknown compression {}", name, kind));
    return PackedHeader{kind == ELFCOMPRESS_ZLIB ? Compression::kZlib : Compression::kZstd, size, sizeof(Elf64_Chdr)};
  }
  bool gnu = section.name.starts_with(".zdebug_") && start.size() >= kZdebugHeader && memcmp(start.data(), "ZLIB", 4) == 0;
  if (!gnu) return std::nullopt;
  ByteReader size(start.subspan(4), /*swap=*/true);
  return PackedHeader{Compression::kZlib, size.u64(), kZdebugHeader};
}

std::span<const std::byte> build_id_in(std::span<const std::byte> notes) {
  ByteReader reader(notes);
  auto padded = [](uint64_t size) { return (size + 3) & ~uint64_t{3}; };
  while (reader.remaining() >= sizeof(Elf64_Nhdr)) {
    uint32_t name_size = reader.u32(), size = reader.u32(), type = reader.u32();
    auto name = reader.bytes(name_size);
    reader.skip(std::min<uint64_t>(padded(name_size) - name_size, reader.remaining()));
    auto content = reader.bytes(size);
    if (!reader.ok()) return {};
    bool gnu = name.size() == 4 && memcmp(name.data(), "GNU", 4) == 0;
    if (gnu && type == NT_GNU_BUILD_ID && !content.empty() && content.size() <= kMaxBuildId) return content;
    reader.skip(std::min<uint64_t>(padded(size) - size, reader.remaining()));
  }
  return {};
}

// The smallest pages that the machine's kernels map files with.
std::span<const uint64_t> page_sizes(uint16_t machine) {
  static constexpr uint64_t kSizes[] = {4096, 16384, 65536};
  return std::span(kSizes).first(machine == EM_AARCH64 ? 3 : 1);
}

}  // namespace

struct ElfFile::Impl {
  struct CachedSection {
    Buffer bytes;
    bool loaded = false, pinned = false;
  };

  explicit Impl(ByteSource s, ElfHeaders h)
      : source(std::move(s)), headers(std::move(h)), cache(headers.sections.size()) {}

  Result<std::span<const std::byte>> data(const Section& section);
  Result<void> check_range(const Section& section, const std::string& name) const;
  bool is_plain(const Section& section) const;
  Result<void> append_plain(const Section& section, std::vector<std::byte>* into) const;
  Result<std::span<const std::byte>> raw(const Section& section, Buffer* into) const;
  Result<std::span<const std::byte>> content(const Section& section, Buffer* into) const;
  void find_build_id();
  Result<void> add_symbols(const Section& table, std::vector<Symbol>* into);
  Result<void> add_embedded_symbols(const Section& section, std::vector<Symbol>* into);
  Result<void> add_go_functions(ElfFile& file, std::vector<Symbol>* into);
  const Segment* segment_of_mapping(uint64_t avma_start, uint64_t file_offset, bool executable) const;

  ByteSource source;
  ElfHeaders headers;
  std::vector<CachedSection> cache;
  std::optional<std::vector<std::byte>> build_id;
  std::optional<DynamicSymbols> dynamic;  // of a file without sections, once symbols() was asked for
  std::shared_ptr<ElfFile> embedded;      // .gnu_debugdata's, once symbols() was asked for
  std::optional<GoTable> go_table;        // of a stripped Go program, once symbols() was asked for
  bool is_foreign = false;
};

Result<void> ElfFile::Impl::check_range(const Section& section, const std::string& name) const {
  uint64_t limit = is_debug_name(section.name) ? kMaxDebugSectionBytes : kMaxSectionBytes;
  if (!source.contains(section.file_offset, section.size))
    return fail(fmt::format("{}: lies outside the file ({} bytes at {}, the file has {})", name, section.size,
                            section.file_offset, source.size()));
  if (section.size > limit) return fail(fmt::format("{}: {} bytes are over the limit of {}", name, section.size, limit), EFBIG);
  return {};
}

// In a file, and stored as it is: it can be read to where it belongs.
bool ElfFile::Impl::is_plain(const Section& section) const {
  const bool has_bytes = section.type != SHT_NOBITS && section.type != SHT_NULL && section.size != 0;
  return has_bytes && !source.in_memory() && !(section.flags & SHF_COMPRESSED) && !section.name.starts_with(".zdebug_");
}

Result<void> ElfFile::Impl::append_plain(const Section& section, std::vector<std::byte>* into) const {
  TRY(check_range(section, source.name() + ": " + section.name));
  const size_t before = into->size();
  into->resize(before + section.size);
  return source.read(section.file_offset, std::span(*into).subspan(before));
}

// The section's bytes as stored: a view of the memory image, or read into the buffer.
Result<std::span<const std::byte>> ElfFile::Impl::raw(const Section& section, Buffer* into) const {
  std::string name = source.name() + ": " + section.name;
  TRY(check_range(section, name));
  if (source.in_memory()) return source.memory().subspan(section.file_offset, section.size);
  if (!into->resize(section.size)) return fail(name + ": out of memory", ENOMEM);
  TRY(source.read(section.file_offset, into->span()));
  return std::span<const std::byte>(into->span());
}

Result<std::span<const std::byte>> ElfFile::Impl::content(const Section& section, Buffer* into) const {
  if (section.type == SHT_NOBITS || section.type == SHT_NULL || section.size == 0) return std::span<const std::byte>();
  std::string name = source.name() + ": " + section.name;
  Buffer stored;
  auto bytes = TRY(raw(section, &stored));
  auto packed = TRY(packed_header(section, bytes, name));
  if (packed)
    *into = TRY(decompress({packed->kind, packed->unpacked_size, bytes.subspan(packed->length)}, name));
  else if (source.in_memory())
    return bytes;
  else
    *into = std::move(stored);
  return std::span<const std::byte>(into->span());
}

Result<std::span<const std::byte>> ElfFile::Impl::data(const Section& section) {
  CPROF_CHECK(section.index < cache.size());
  CachedSection& cached = cache[section.index];
  if (cached.loaded) return std::span<const std::byte>(cached.bytes.span());
  auto bytes = TRY(content(section, &cached.bytes));
  cached.loaded = cached.bytes.size() != 0;
  return bytes;
}

// Sections first: in a separate debug file the program headers are those of the original, and point nowhere.
void ElfFile::Impl::find_build_id() {
  std::vector<std::pair<uint64_t, uint64_t>> places;
  for (const Section& section : headers.sections) {
    if (section.type == SHT_NOTE) places.emplace_back(section.file_offset, section.size);
  }
  for (const Elf64_Phdr& row : headers.program_headers) {
    if (row.p_type == PT_NOTE) places.emplace_back(row.p_offset, row.p_filesz);
  }
  if (places.size() > kMaxNotes) places.resize(kMaxNotes);
  build_id.emplace();
  for (auto [offset, size] : places) {
    if (size > kMaxNoteBytes || !source.contains(offset, size)) continue;
    std::vector<std::byte> notes(size);
    if (!source.read(offset, notes)) continue;
    auto id = build_id_in(notes);
    build_id->assign(id.begin(), id.end());
    if (!id.empty()) return;
  }
}

Result<void> ElfFile::Impl::add_symbols(const Section& table, std::vector<Symbol>* into) {
  std::string name = source.name() + ": " + table.name;
  if (table.entry_size != sizeof(Elf64_Sym)) return fail(name + ": symbols of an unknown size");
  if (table.link >= headers.sections.size() || headers.sections[table.link].type != SHT_STRTAB)
    return fail(name + ": has no string table");
  SymbolTable symbols{TRY(data(table)), TRY(data(headers.sections[table.link])), headers.sections, headers.header.e_machine};
  cache[table.link].pinned = true;
  return append_functions(symbols, name, into);
}

// The distributions of the Fedora family strip .symtab and put what .dynsym lacks, as an ELF file packed with xz, here.
Result<void> ElfFile::Impl::add_embedded_symbols(const Section& section, std::vector<Symbol>* into) {
  if (!embedded) {
    std::string name = source.name() + ": " + section.name;
    Buffer stored;
    auto packed = TRY(content(section, &stored));
    Buffer image = TRY(unpack_xz(packed, name));
    embedded = TRY(ElfFile::from_memory({image.span().begin(), image.span().end()}, name));
  }
  for (const Section& table : embedded->sections()) {
    if (table.type == SHT_SYMTAB && table.size != 0) return embedded->impl_->add_symbols(table, into);
  }
  return {};
}

// A mapping begins at a page of the file, so at or before its segment's p_offset, and that page may hold the end of
// another segment too. So the segment whose first page it is comes before one that merely contains the offset (a mapping
// split by mprotect), the wanted permission before any other, and for a fixed-address file the one that needs no bias.
const Segment* ElfFile::Impl::segment_of_mapping(uint64_t avma_start, uint64_t file_offset, bool executable) const {
  const Segment* best = nullptr;
  unsigned best_rank = 0;
  for (const Segment& segment : headers.segments) {
    if (segment.file_size == 0) continue;
    bool first_page = false;
    for (uint64_t page : page_sizes(headers.header.e_machine)) {
      first_page |= file_offset == (segment.file_offset & ~(page - 1));
    }
    bool contains = file_offset >= segment.file_offset && file_offset - segment.file_offset < segment.file_size;
    if (!first_page && !contains) continue;
    bool permission = executable == bool(segment.flags & PF_X);
    bool unbiased = headers.header.e_type == ET_EXEC && avma_start == segment.vaddr - segment.file_offset + file_offset;
    unsigned rank = 1 + first_page + 2 * permission + 4 * unbiased;
    if (rank > best_rank) best = &segment, best_rank = rank;
  }
  return best;
}

ElfFile::ElfFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ElfFile::~ElfFile() = default;

Result<std::shared_ptr<ElfFile>> ElfFile::open(Fd fd, std::string name) {
  auto source = TRY(ByteSource::from_file(std::move(fd), std::move(name)));
  auto headers = TRY(read_elf_headers(source));
  return std::shared_ptr<ElfFile>(new ElfFile(std::make_unique<Impl>(std::move(source), std::move(headers))));
}

Result<std::shared_ptr<ElfFile>> ElfFile::open(const std::string& path) {
  // O_NONBLOCK: a FIFO in a target's place must not hang us before it is refused.
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return fail_errno(path);
  return open(std::move(fd), path);
}

Result<std::shared_ptr<ElfFile>> ElfFile::from_memory(std::vector<std::byte> bytes, std::string name) {
  auto source = ByteSource::from_memory(std::move(bytes), std::move(name));
  auto headers = TRY(read_elf_headers(source));
  return std::shared_ptr<ElfFile>(new ElfFile(std::make_unique<Impl>(std::move(source), std::move(headers))));
}

const std::string& ElfFile::name() const { return impl_->source.name(); }
uint16_t ElfFile::machine() const { return impl_->headers.header.e_machine; }
uint16_t ElfFile::type() const { return impl_->headers.header.e_type; }
uint64_t ElfFile::entry() const { return impl_->headers.header.e_entry; }
std::span<const Segment> ElfFile::segments() const { return impl_->headers.segments; }
std::span<const Section> ElfFile::sections() const { return impl_->headers.sections; }
const std::string& ElfFile::section_problem() const { return impl_->headers.section_problem; }
int ElfFile::fd() const { return impl_->source.fd(); }
std::span<const std::byte> ElfFile::memory() const { return impl_->source.memory(); }
const struct stat& ElfFile::stat() const { return impl_->source.stat(); }
void ElfFile::mark_foreign() { impl_->is_foreign = true; }
bool ElfFile::is_foreign() const { return impl_->is_foreign; }

const Section* ElfFile::find_section(std::string_view name) const {
  bool debug = name.starts_with(".debug_");
  const Section* packed = nullptr;
  for (const Section& section : impl_->headers.sections) {
    if (section.name == name) return &section;
    bool zdebug = debug && section.name.starts_with(".z") && std::string_view(section.name).substr(2) == name.substr(1);
    if (zdebug && !packed) packed = &section;
  }
  return packed;
}

std::optional<std::pair<uint64_t, uint64_t>> ElfFile::eh_frame_header_range() const {
  for (const Elf64_Phdr& row : impl_->headers.program_headers) {
    if (row.p_type == PT_GNU_EH_FRAME) return std::pair(row.p_vaddr, row.p_memsz);
  }
  return std::nullopt;
}

Result<std::span<const std::byte>> ElfFile::section_data(const Section& section) { return impl_->data(section); }

Result<std::span<const std::byte>> ElfFile::section_data(std::string_view name) {
  const Section* section = find_section(name);
  if (!section) return std::span<const std::byte>();
  return impl_->data(*section);
}

Result<void> ElfFile::append_section_data(const Section& section, std::vector<std::byte>* into) {
  CPROF_CHECK(section.index < impl_->cache.size());
  Buffer buffer;
  const Impl::CachedSection& cached = impl_->cache[section.index];
  if (!cached.loaded && impl_->is_plain(section)) return impl_->append_plain(section, into);
  auto bytes = cached.loaded ? cached.bytes.span() : TRY(impl_->content(section, &buffer));
  into->insert(into->end(), bytes.begin(), bytes.end());
  return {};
}

Result<uint64_t> ElfFile::section_data_size(const Section& section) const {
  if (section.type == SHT_NOBITS || section.type == SHT_NULL) return uint64_t{0};
  std::string name = impl_->source.name() + ": " + section.name;
  std::vector<std::byte> start(std::min<uint64_t>(section.size, sizeof(Elf64_Chdr)));
  if (section.file_offset + section.size < section.size) return fail(name + ": lies outside the file");
  TRY(impl_->source.read(section.file_offset, start));
  auto packed = TRY(packed_header(section, start, name));
  if (!packed) return section.size;
  TRY(check_unpacked_size(packed->unpacked_size, section.size - packed->length, name));
  return packed->unpacked_size;
}

void ElfFile::drop_cached_data() {
  for (auto& cached : impl_->cache) {
    if (!cached.pinned) cached = {};
  }
}

Result<void> ElfFile::read_at_svma(uint64_t svma, std::span<std::byte> into) {
  while (!into.empty()) {
    const Segment* inside = nullptr;
    for (const Segment& segment : impl_->headers.segments) {
      if (svma >= segment.vaddr && svma - segment.vaddr < segment.memory_size) inside = &segment;
    }
    if (!inside) return fail(fmt::format("{}: no segment holds address {:#x}", name(), svma));
    uint64_t offset = svma - inside->vaddr;
    size_t piece = std::min<uint64_t>(into.size(), inside->memory_size - offset);
    size_t stored = offset < inside->file_size ? std::min<uint64_t>(piece, inside->file_size - offset) : 0;
    TRY(impl_->source.read(inside->file_offset + offset, into.first(stored)));
    memset(into.data() + stored, 0, piece - stored);
    into = into.subspan(piece);
    svma += piece;
  }
  return {};
}

std::optional<uint64_t> ElfFile::svma_to_file_offset(uint64_t svma) const {
  for (const Segment& segment : impl_->headers.segments) {
    if (svma >= segment.vaddr && svma - segment.vaddr < segment.file_size) return svma - segment.vaddr + segment.file_offset;
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfFile::file_offset_to_svma(uint64_t offset) const {
  std::optional<uint64_t> other;
  for (const Segment& segment : impl_->headers.segments) {
    if (offset < segment.file_offset || offset - segment.file_offset >= segment.file_size) continue;
    uint64_t svma = offset - segment.file_offset + segment.vaddr;
    if (segment.flags & PF_X) return svma;
    if (!other) other = svma;
  }
  return other;
}

std::optional<uint64_t> ElfFile::load_bias(uint64_t avma_start, uint64_t file_offset, bool executable) const {
  const Segment* segment = impl_->segment_of_mapping(avma_start, file_offset, executable);
  if (!segment) return std::nullopt;
  return avma_start - (segment->vaddr - segment->file_offset + file_offset);
}

std::span<const std::byte> ElfFile::build_id() {
  if (!impl_->build_id) impl_->find_build_id();
  return *impl_->build_id;
}

std::optional<DebugLink> ElfFile::debug_link() {
  auto content = section_data(".gnu_debuglink");
  if (!content || content->empty()) return std::nullopt;
  ByteReader reader(*content);
  DebugLink link;
  link.file_name = reader.cstring();
  reader.seek((reader.position() + 3) & ~size_t{3});
  link.crc = reader.u32();
  if (!reader.ok() || link.file_name.empty()) return std::nullopt;
  return link;
}

Result<void> ElfFile::Impl::add_go_functions(ElfFile& file, std::vector<Symbol>* into) {
  if (!go_table) go_table = TRY(read_go_table(file));
  if (!go_table) return {};
  std::vector<std::byte> rows;
  for (const GoFunction& function : go_table->functions) {
    Elf64_Sym row{.st_name = function.name,
                  .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                  .st_other = 0,
                  .st_shndx = SHN_ABS,
                  .st_value = function.start,
                  .st_size = function.end - function.start};
    const auto bytes = std::as_bytes(std::span(&row, 1));
    rows.insert(rows.end(), bytes.begin(), bytes.end());
  }
  return append_functions({rows, go_table->names, {}, headers.header.e_machine}, source.name() + ": .gopclntab", into);
}

Result<std::vector<Symbol>> ElfFile::symbols() {
  std::vector<Symbol> result;
  if (impl_->headers.sections.empty()) {
    if (!impl_->dynamic) impl_->dynamic = TRY(read_dynamic_symbols(*this, impl_->headers.program_headers));
    if (!impl_->dynamic) return result;
    TRY(append_functions({impl_->dynamic->rows, impl_->dynamic->names, {}, machine()}, name(), &result));
    return result;
  }
  auto table_of = [&](uint32_t type) -> const Section* {
    for (const Section& section : impl_->headers.sections) {
      if (section.type == type && section.size != 0) return &section;
    }
    return nullptr;
  };
  const Section* full = table_of(SHT_SYMTAB);
  const Section* packed = find_section(".gnu_debugdata");
  if (full)
    TRY(impl_->add_symbols(*full, &result));
  else if (packed && packed->type != SHT_NOBITS)
    TRY(impl_->add_embedded_symbols(*packed, &result));
  if (!full) TRY(impl_->add_go_functions(*this, &result));
  if (const Section* dynamic = table_of(SHT_DYNSYM)) TRY(impl_->add_symbols(*dynamic, &result));
  return result;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace cprof::object
