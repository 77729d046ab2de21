#include "object/elf_decompress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cprof::object {
namespace {

constexpr uint64_t kMaxImageBytes = uint64_t{2} << 30;
constexpr uint64_t kFreeBytes = 64 << 20;  // that any file may take
constexpr uint64_t kMaxRatio = 200;
constexpr size_t kAlignment = 16;

bool is_packed(const Section& section) {
  return (section.flags & SHF_COMPRESSED) || section.name.starts_with(".zdebug_");
}

bool is_kept(const Section& section) {
  if (section.type == SHT_NOBITS || section.type == SHT_NULL) return false;
  if (section.type == SHT_SYMTAB || section.type == SHT_STRTAB || section.type == SHT_NOTE) return true;
  return section.name.starts_with(".debug_") || section.name.starts_with(".zdebug_") ||
         section.name == ".gnu_debugaltlink";
}

std::string plain_name(const std::string& name) {
  return name.starts_with(".zdebug_") ? ".debug_" + name.substr(strlen(".zdebug_")) : name;
}

// Many sections may be made of the same few bytes, so the sum is bounded by the file's own size too.
uint64_t image_limit(const ElfFile& file) {
  uint64_t size = file.fd() >= 0 ? static_cast<uint64_t>(file.stat().st_size) : file.memory().size();
  return size >= kMaxImageBytes / kMaxRatio ? kMaxImageBytes : kFreeBytes + size * kMaxRatio;
}

// Everything is checked by its claimed size before the first byte is unpacked.
Result<uint64_t> image_size(const ElfFile& file) {
  uint64_t limit = image_limit(file);
  uint64_t total = sizeof(Elf64_Ehdr) + file.sections().size() * (sizeof(Elf64_Shdr) + kAlignment);
  for (const Section& section : file.sections()) {
    total += section.name.size() + 1;
    if (is_kept(section)) total += TRY(file.section_data_size(section));
    if (total > limit) return fail(fmt::format("{}: debug sections unpack to over {} bytes", file.name(), limit), EFBIG);
  }
  return total;
}

class ImageWriter {
 public:
  explicit ImageWriter(ElfFile& file) : file_(file) {}

  Result<std::vector<std::byte>> write() {
    if (file_.sections().empty()) return fail(file_.name() + ": has no sections");
    if (file_.sections().size() + 1 >= SHN_LORESERVE) return fail(file_.name() + ": has too many sections");
    image_.reserve(TRY(image_size(file_)));
    image_.resize(sizeof(Elf64_Ehdr));
    for (const Section& section : file_.sections()) TRY(add(section));
    add_name_table();
    finish();
    return std::move(image_);
  }

 private:
  uint64_t align() {
    image_.resize((image_.size() + kAlignment - 1) / kAlignment * kAlignment);
    return image_.size();
  }

  uint32_t add_name(const std::string& name) {
    uint32_t at = static_cast<uint32_t>(names_.size());
    names_ += name;
    names_ += '\0';
    return at;
  }

  Result<void> add(const Section& section) {
    Elf64_Shdr row = {};
    row.sh_name = add_name(plain_name(section.name));
    row.sh_type = section.type;
    row.sh_flags = section.flags & ~uint64_t{SHF_COMPRESSED};
    row.sh_addr = section.vaddr;
    row.sh_size = section.size;
    row.sh_link = section.link;
    row.sh_entsize = section.entry_size;
    row.sh_addralign = 1;
    row.sh_offset = align();
    if (is_kept(section)) {
      TRY(file_.append_section_data(section, &image_));
      row.sh_size = image_.size() - row.sh_offset;
    } else if (section.type != SHT_NULL) {
      row.sh_type = SHT_NOBITS;
    } else {
      row = {};
    }
    rows_.push_back(row);
    return {};
  }

  void append(const void* data, size_t size) {
    auto* bytes = static_cast<const std::byte*>(data);
    image_.insert(image_.end(), bytes, bytes + size);
  }

  void add_name_table() {
    Elf64_Shdr row = {};
    row.sh_name = add_name(".shstrtab");
    row.sh_type = SHT_STRTAB;
    row.sh_addralign = 1;
    row.sh_offset = image_.size();
    row.sh_size = names_.size();
    append(names_.data(), names_.size());
    rows_.push_back(row);
  }

  void finish() {
    Elf64_Ehdr header = {};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = file_.type();
    header.e_machine = file_.machine();
    header.e_version = EV_CURRENT;
    header.e_entry = file_.entry();
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<uint16_t>(rows_.size());
    header.e_shstrndx = static_cast<uint16_t>(rows_.size() - 1);
    header.e_shoff = align();
    append(rows_.data(), rows_.size() * sizeof(Elf64_Shdr));
    memcpy(image_.data(), &header, sizeof header);
  }

  ElfFile& file_;
  std::vector<std::byte> image_;
  std::vector<Elf64_Shdr> rows_;
  std::string names_;
};

}  // namespace

bool needs_decompression(const ElfFile& file) {
  return std::any_of(file.sections().begin(), file.sections().end(), is_packed);
}

Result<std::vector<std::byte>> decompressed_image(ElfFile& file) { return ImageWriter(file).write(); }

}  // namespace cprof::object
