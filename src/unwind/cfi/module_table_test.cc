// From ELF files to tables: where the CFI is found.
#include "unwind/cfi/module_table.h"

#include <gtest/gtest.h>

#include <elf.h>

#include <fmt/format.h>

#include "base/file.h"
#include "object/go_program_for_tests.h"
#include "unwind/cfi/cfi_bytes_for_tests.h"
#include "unwind/cfi/module_table_impl.h"

namespace cprof::unwind {
namespace {

constexpr const char* kLibc = "/lib/x86_64-linux-gnu/libc.so.6";

template <typename T>
void put(std::vector<std::byte>& image, size_t at, const T& value) {
  if (image.size() < at + sizeof(T)) image.resize(at + sizeof(T));
  memcpy(image.data() + at, &value, sizeof(T));
}

// An executable with one text segment at 0x1000 and, if given, a .debug_frame: what gcc makes of
// -g -fno-asynchronous-unwind-tables.
std::shared_ptr<object::ElfFile> elf_with_debug_frame(const std::vector<std::byte>& debug_frame) {
  constexpr size_t kTextOffset = 0x1000, kTextSize = 0x1000, kNames = 0x2000;
  static const char names[] = "\0.text\0.debug_frame\0.shstrtab";
  std::vector<std::byte> image(kNames);
  size_t frame_at = kNames + sizeof(names), headers = (frame_at + debug_frame.size() + 7) & ~size_t{7};
  image.resize(headers);
  memcpy(image.data() + kNames, names, sizeof(names));
  if (!debug_frame.empty()) memcpy(image.data() + frame_at, debug_frame.data(), debug_frame.size());
  Elf64_Shdr sections[4] = {};
  sections[1] = {1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, kTextOffset, kTextSize, 0, 0, 16, 0};
  sections[2] = {7, SHT_PROGBITS, 0, 0, frame_at, debug_frame.size(), 0, 0, 8, 0};
  sections[3] = {20, SHT_STRTAB, 0, 0, kNames, sizeof(names), 0, 0, 1, 0};
  for (size_t i = 0; i < 4; i++) put(image, headers + i * sizeof(Elf64_Shdr), sections[i]);
  Elf64_Ehdr header = {};
  memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_shoff = headers;
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  put(image, 0, header);
  put(image, sizeof(header), Elf64_Phdr{PT_LOAD, PF_R | PF_X, kTextOffset, 0x1000, 0x1000, kTextSize, kTextSize, 0x1000});
  return object::ElfFile::from_memory(std::move(image), "made by the test").value();
}

std::vector<std::byte> debug_frame() {
  SectionWriter writer(false);
  size_t cie = writer.usual_cie("");
  writer.fde(cie, 0x1100, 0x40, {0x44, 0x0e, 32}, false);
  return writer.source().bytes;
}

void expect_frame(const ModuleTable& table) {
  const cp_rule* rule = cp_find_rule(&table.impl().table, 0x1104);
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->cfa_kind, CP_CFA_SP);
  EXPECT_EQ(rule->offset, 32);
  EXPECT_EQ(table.function_range(0x113f), std::pair(uint64_t{0x1100}, uint64_t{0x1140}));
  EXPECT_FALSE(table.function_range(0x1140));
  EXPECT_FALSE(table.function_range(0x10ff));
}

TEST(ModuleTable, DebugFrameAlone) {
  auto table = ModuleTable::compile(*elf_with_debug_frame(debug_frame()), nullptr);
  ASSERT_TRUE(table) << table.error().message;
  expect_frame(**table);
}

TEST(ModuleTable, DebugFrameOfTheDebugFile) {
  auto stripped = elf_with_debug_frame({});
  auto debug = elf_with_debug_frame(debug_frame());
  auto table = ModuleTable::compile(*stripped, debug.get());
  ASSERT_TRUE(table) << table.error().message;
  expect_frame(**table);
  auto without = ModuleTable::compile(*stripped, nullptr);
  ASSERT_TRUE(without);
  EXPECT_EQ((*without)->row_count(), 0u);
}

TEST(ModuleTable, FileWithoutSectionHeaders) {
  auto fd = open_read(kLibc);
  if (!fd) GTEST_SKIP() << fd.error().message;
  auto bytes = read_all(fd->get(), 64 << 20, kLibc);
  ASSERT_TRUE(bytes);
  auto whole = ModuleTable::compile(**object::ElfFile::from_memory(*bytes, "whole"), nullptr);
  Elf64_Ehdr header;
  memcpy(&header, bytes->data(), sizeof(header));
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  memcpy(bytes->data(), &header, sizeof(header));
  auto file = object::ElfFile::from_memory(*bytes, "without section headers");
  ASSERT_TRUE(file) << file.error().message;
  auto table = ModuleTable::compile(**file, nullptr);
  ASSERT_TRUE(table) << table.error().message;
  const ModuleTable::Impl &a = (*whole)->impl(), &b = (*table)->impl();
  ASSERT_EQ(a.fdes.size(), b.fdes.size());
  for (const FdeRange& fde : a.fdes) {
    uint64_t pc = a.rows.base + fde.start + fde.size - 1;
    const cp_rule *left = cp_find_rule(&a.table, pc), *right = cp_find_rule(&b.table, pc);
    ASSERT_TRUE(left && right);
    ASSERT_EQ(memcmp(left, right, sizeof(cp_rule)), 0) << std::hex << pc;
  }
}

TEST(ModuleTable, StrippedGoProgramsFramesAreAsDeepAsTheirTableSays) {
  using object::GoProgram;
  auto file = object::ElfFile::from_memory(GoProgram{}.build(), "stripped");
  ASSERT_TRUE(file) << file.error().message;
  auto table = ModuleTable::compile(**file, nullptr);
  ASSERT_TRUE(table) << table.error().message;
  auto rule_at = [&](uint64_t svma) {
    const cp_rule* rule = cp_find_rule(&(*table)->impl().table, svma);
    return rule ? *rule : cp_rule{};
  };
  EXPECT_EQ(rule_at(GoProgram::kText).cfa_kind, CP_CFA_NONE) << "its depths are not told";
  for (uint64_t svma : {GoProgram::kWork, GoProgram::kWorkTail}) {
    EXPECT_EQ(rule_at(svma).cfa_kind, CP_CFA_SP);
    EXPECT_EQ(rule_at(svma).offset, 8);
    EXPECT_EQ(rule_at(svma).fp_kind, CP_FP_SAME);
  }
  EXPECT_EQ(rule_at(GoProgram::kWorkBody).offset, 32);
  EXPECT_EQ(rule_at(GoProgram::kWorkBody).fp_kind, CP_FP_AT_CFA);
  EXPECT_EQ(rule_at(GoProgram::kWorkBody).fp_offset, -16);
  EXPECT_EQ(rule_at(GoProgram::kGoexit + 1).cfa_kind, CP_CFA_STOP);
}

}  // namespace
}  // namespace cprof::unwind
