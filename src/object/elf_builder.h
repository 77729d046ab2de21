// Makes small ELF files for tests, right or wrong on purpose. Tests only; never linked into the product.
#pragma once

#include <elf.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace cprof::object {

class ElfBuilder {
 public:
  using Bytes = std::vector<std::byte>;

  explicit ElfBuilder(uint16_t type = ET_DYN, uint16_t machine = EM_X86_64) {
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = type;
    header.e_machine = machine;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    sections.push_back({});
  }

  static Bytes bytes(std::string_view text) {
    auto* start = reinterpret_cast<const std::byte*>(text.data());
    return Bytes(start, start + text.size());
  }

  void add_segment(uint32_t flags, uint64_t offset, uint64_t vaddr, uint64_t file_size, uint64_t memory_size = 0) {
    Elf64_Phdr row = {};
    row.p_type = PT_LOAD;
    row.p_flags = flags;
    row.p_offset = offset;
    row.p_vaddr = vaddr;
    row.p_filesz = file_size;
    row.p_memsz = memory_size ? memory_size : file_size;
    row.p_align = 4096;
    segments.push_back(row);
  }

  // Gives the section's number. The row may be changed until build().
  uint32_t add_section(std::string name, uint32_t type, Bytes content = {}, uint64_t flags = 0) {
    SectionPlan plan;
    plan.name = std::move(name);
    plan.content = std::move(content);
    plan.row.sh_type = type;
    plan.row.sh_flags = flags;
    plan.row.sh_size = plan.content.size();
    sections.push_back(std::move(plan));
    return static_cast<uint32_t>(sections.size() - 1);
  }

  void add_build_id(std::string_view id) {
    Bytes note;
    for (uint32_t word : {uint32_t{4}, static_cast<uint32_t>(id.size()), uint32_t{NT_GNU_BUILD_ID}}) append(&note, word);
    for (std::byte b : bytes(std::string_view("GNU\0", 4))) note.push_back(b);
    for (std::byte b : bytes(id)) note.push_back(b);
    note.resize((note.size() + 3) / 4 * 4);
    add_section(".note.gnu.build-id", SHT_NOTE, note);
  }

  void add_debug_link(std::string_view file_name, uint32_t crc) {
    Bytes content = bytes(file_name);
    content.resize(content.size() / 4 * 4 + 4);
    append(&content, crc);
    add_section(".gnu_debuglink", SHT_PROGBITS, content);
  }

  struct SymbolPlan {
    std::string name;
    uint64_t address = 0, size = 0;
    uint8_t type = STT_FUNC;
    uint16_t section = 1;
  };
  void add_symbols(const std::vector<SymbolPlan>& symbols, uint32_t type = SHT_SYMTAB) {
    Bytes table(sizeof(Elf64_Sym)), names(1);
    for (const SymbolPlan& symbol : symbols) {
      Elf64_Sym row = {};
      row.st_name = static_cast<uint32_t>(names.size());
      row.st_info = ELF64_ST_INFO(STB_GLOBAL, symbol.type);
      row.st_shndx = symbol.section;
      row.st_value = symbol.address;
      row.st_size = symbol.size;
      append(&table, row);
      for (std::byte b : bytes(std::string_view(symbol.name.c_str(), symbol.name.size() + 1))) names.push_back(b);
    }
    bool dynamic = type == SHT_DYNSYM;
    uint32_t strings = add_section(dynamic ? ".dynstr" : ".strtab", SHT_STRTAB, names);
    uint32_t number = add_section(dynamic ? ".dynsym" : ".symtab", type, table);
    sections[number].row.sh_link = strings;
    sections[number].row.sh_entsize = sizeof(Elf64_Sym);
  }

  // The header, program headers, contents, section names, section headers. A section whose row has an offset already
  // keeps it (a lie), and so does a header field set by hand.
  Bytes build() {
    uint32_t names_at = add_section(".shstrtab", SHT_STRTAB);
    Bytes names;
    for (SectionPlan& plan : sections) {
      plan.row.sh_name = static_cast<uint32_t>(names.size());
      for (std::byte b : bytes(std::string_view(plan.name.c_str(), plan.name.size() + 1))) names.push_back(b);
    }
    sections[names_at].row.sh_size = names.size();
    sections[names_at].content = names;

    Bytes image(sizeof header);
    header.e_phoff = segments.empty() ? 0 : image.size();
    header.e_phnum = static_cast<uint16_t>(segments.size());
    for (const Elf64_Phdr& row : segments) append(&image, row);
    for (SectionPlan& plan : sections) {
      image.resize((image.size() + 7) / 8 * 8);
      if (plan.row.sh_offset == 0) plan.row.sh_offset = image.size();
      image.insert(image.end(), plan.content.begin(), plan.content.end());
    }
    sections[0].row.sh_offset = 0;
    image.resize((image.size() + 7) / 8 * 8);
    header.e_shoff = image.size();
    header.e_shnum = static_cast<uint16_t>(sections.size());
    header.e_shstrndx = static_cast<uint16_t>(names_at);
    for (const SectionPlan& plan : sections) append(&image, plan.row);
    if (adjust_header) adjust_header(&header);
    memcpy(image.data(), &header, sizeof header);
    return image;
  }

  template <typename T>
  static void append(Bytes* into, const T& value) {
    auto* start = reinterpret_cast<const std::byte*>(&value);
    into->insert(into->end(), start, start + sizeof value);
  }

  struct SectionPlan {
    std::string name;
    Bytes content;
    Elf64_Shdr row = {};
  };
  Elf64_Ehdr header = {};
  std::vector<Elf64_Phdr> segments;
  std::vector<SectionPlan> sections;
  void (*adjust_header)(Elf64_Ehdr*) = nullptr;
};

}  // namespace cprof::object
