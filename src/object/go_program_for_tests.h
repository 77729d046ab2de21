// A stripped Go program of three functions, as Go's linker lays out its function table. Tests only.
#pragma once

#include <array>

#include "object/elf_builder.h"

namespace cprof::object {

struct GoProgram {
  enum class TextBy : uint8_t { kHeader, kPointer, kRelocation, kSection };

  static constexpr uint64_t kText = 0x401040, kTable = 0x500000;  // runtime.text is not .text's start, as with cgo
  static constexpr uint64_t kWork = kText + 0x20, kGoexit = kText + 0x40, kEnd = kText + 0x60;
  // work: its return address lies 0, then 24, then 0 bytes above the stack pointer.
  static constexpr uint64_t kWorkBody = kWork + 4, kWorkTail = kWork + 12, kWorkEnd = kWork + 16;

  uint32_t magic = 0xfffffff1;
  TextBy text_by = TextBy::kPointer;

  ElfBuilder::Bytes build() const {
    ElfBuilder builder(ET_EXEC);
    builder.add_segment(PF_R | PF_X, 0, 0x400000, 0x10000);
    const uint32_t text = builder.add_section(".text", SHT_NOBITS, {}, SHF_ALLOC | SHF_EXECINSTR);
    builder.sections[text].row.sh_addr = text_by == TextBy::kSection ? kText : 0x401000;
    const uint32_t table = builder.add_section(".gopclntab", SHT_PROGBITS, table_bytes(), SHF_ALLOC);
    builder.sections[table].row.sh_addr = kTable;
    if (text_by == TextBy::kPointer)
      builder.add_section(".go.module", SHT_PROGBITS, module_data(), SHF_ALLOC | SHF_WRITE);
    if (text_by == TextBy::kRelocation) builder.add_section(".rela.dyn", SHT_RELA, relocations(), SHF_ALLOC);
    return builder.build();
  }

  bool is_relative() const { return magic == 0xfffffff1 || magic == 0xfffffff0; }

 private:
  using Bytes = ElfBuilder::Bytes;

  static Bytes module_data() {
    Bytes data(64);
    ElfBuilder::append(&data, kTable);
    data.resize(data.size() + 168);
    ElfBuilder::append(&data, kText);
    return data;
  }

  static Bytes relocations() {
    Bytes rows;
    const uint64_t info = ELF64_R_INFO(0, R_X86_64_RELATIVE);
    ElfBuilder::append(&rows, Elf64_Rela{0x600000, info, static_cast<int64_t>(kTable)});
    ElfBuilder::append(&rows, Elf64_Rela{0x600000 + 168, info, 0x401000});
    ElfBuilder::append(&rows, Elf64_Rela{0x600000 + 176, info, static_cast<int64_t>(kText)});
    return rows;
  }

  void put_address(Bytes* into, uint64_t svma) const {
    if (is_relative())
      ElfBuilder::append(into, static_cast<uint32_t>(svma - kText));
    else
      ElfBuilder::append(into, svma);
  }
  void put_word(Bytes* into, uint64_t value) const {
    if (is_relative())
      ElfBuilder::append(into, static_cast<uint32_t>(value));
    else
      ElfBuilder::append(into, value);
  }

  Bytes table_bytes() const {
    static constexpr std::string_view kNames("main.main\0main.(*T).work\0runtime.goexit\0", 41);
    const Bytes depths = {std::byte{0}, std::byte{2},  std::byte{4}, std::byte{48},
                          std::byte{8}, std::byte{47}, std::byte{4}, std::byte{0}};
    Bytes table;
    ElfBuilder::append(&table, magic);
    for (int byte : {0, 0, 1, 8}) table.push_back(static_cast<std::byte>(byte));
    ElfBuilder::append(&table, uint64_t{3});
    const bool is_old = magic == 0xfffffffb;
    const uint64_t header = is_old ? 16 : is_relative() ? 72 : 64;
    const uint64_t rows_bytes = 3 * (is_relative() ? 8 : 16) + (is_relative() ? 4 : 8);
    const uint64_t names_at = is_old ? header + rows_bytes + 3 * 64 : header, depths_at = names_at + kNames.size();
    const uint64_t rows_at = is_old ? header : depths_at + depths.size();
    if (!is_old) {
      ElfBuilder::append(&table, uint64_t{1});
      if (is_relative()) ElfBuilder::append(&table, text_by == TextBy::kHeader ? kText : uint64_t{0});
      for (uint64_t part : {names_at, depths_at, depths_at, depths_at, rows_at}) ElfBuilder::append(&table, part);
      append_text(&table, kNames);
      table.insert(table.end(), depths.begin(), depths.end());
    }
    const uint64_t records_at = rows_bytes + (is_old ? header : 0);
    const std::array<uint64_t, 3> starts = {kText, kWork, kGoexit};
    for (uint64_t i = 0; i < 3; i++) put_address(&table, starts[i]), put_word(&table, records_at + i * 64);
    put_address(&table, kEnd);
    const std::array<uint32_t, 3> names = {0, 10, 25}, told = {0, 1, 0};
    for (size_t i = 0; i < 3; i++)
      put_record(&table, starts[i], static_cast<uint32_t>(is_old ? names_at : 0) + names[i], told[i], i == 2);
    if (is_old) append_text(&table, kNames);
    return table;
  }

  void put_record(Bytes* into, uint64_t start, uint32_t name, uint32_t depths, bool is_root) const {
    const size_t from = into->size();
    put_address(into, start);
    for (uint32_t word : {name, 0u, 0u, depths, 0u, 0u, 0u, 0u}) ElfBuilder::append(into, word);
    if (magic == 0xfffffff1) ElfBuilder::append(into, uint32_t{10});
    into->push_back(std::byte{0});
    into->push_back(static_cast<std::byte>(is_root));
    into->resize(from + 64);
  }

  static void append_text(Bytes* into, std::string_view text) {
    for (char c : text) into->push_back(static_cast<std::byte>(c));
  }
};

}  // namespace cprof::object
