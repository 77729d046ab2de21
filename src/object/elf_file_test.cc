#include "object/elf_file.h"

#include <gtest/gtest.h>
#include <lzma.h>

#include <random>

#include "base/file.h"
#include "object/elf_builder.h"
#include "object/process_files.h"
#include "object/temporary_tree.h"

namespace cprof::object {
namespace {

using Bytes = ElfBuilder::Bytes;

std::shared_ptr<ElfFile> open_bytes(const Bytes& bytes) {
  auto file = ElfFile::from_memory(bytes, "test.so");
  EXPECT_TRUE(file) << file.error().message;
  return file ? *file : nullptr;
}

std::string refusal(const Bytes& bytes) {
  auto file = ElfFile::from_memory(bytes, "test.so");
  return file ? "" : file.error().message;
}

std::string text_of(std::span<const std::byte> bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

TEST(ElfFile, SaysWhatItCannotRead) {
  EXPECT_EQ(refusal({}), "test.so: not an ELF file (too short)");
  EXPECT_EQ(refusal(ElfBuilder::bytes("#!/bin/sh\nexec true\n")), "test.so: not an ELF file");
  Bytes good = ElfBuilder().build();
  auto with_byte = [&](size_t at, int value) {
    Bytes changed = good;
    changed[at] = static_cast<std::byte>(value);
    return refusal(changed);
  };
  EXPECT_EQ(with_byte(EI_CLASS, ELFCLASS32), "test.so: not a 64-bit ELF file");
  EXPECT_EQ(with_byte(EI_DATA, ELFDATA2MSB), "test.so: not a little-endian ELF file");
  EXPECT_EQ(with_byte(offsetof(Elf64_Ehdr, e_machine), EM_386), "test.so: ELF machine 3 is neither x86-64 nor aarch64");
  EXPECT_EQ(with_byte(offsetof(Elf64_Ehdr, e_type), ET_CORE),
            "test.so: ELF type 4 is neither an executable nor a shared library");
  good.resize(40);
  EXPECT_EQ(refusal(good), "test.so: truncated in the ELF header");
}

TEST(ElfFile, RefusesWhatIsNotARegularFile) {
  TemporaryTree tree;
  tree.fifo("pipe");
  auto fifo = ElfFile::open(tree / "pipe");  // must not hang either
  ASSERT_FALSE(fifo);
  EXPECT_NE(fifo.error().message.find("not a regular file"), std::string::npos);
  EXPECT_FALSE(ElfFile::open(tree.path()));
  EXPECT_EQ(ElfFile::open(tree / "absent").error().code, ENOENT);
}

TEST(ElfFile, ReadsSectionsFromFileAndMemory) {
  ElfBuilder builder;
  builder.add_section(".text", SHT_PROGBITS, ElfBuilder::bytes("code"), SHF_EXECINSTR);
  builder.add_section(".bss", SHT_NOBITS);
  builder.sections.back().row.sh_size = uint64_t{1} << 50;
  Bytes bytes = builder.build();
  TemporaryTree tree;
  auto from_file = ElfFile::open(tree.write("a.so", bytes));
  ASSERT_TRUE(from_file);
  for (auto& file : {open_bytes(bytes), *from_file}) {
    EXPECT_EQ(text_of(*file->section_data(".text")), "code");
    EXPECT_TRUE(file->section_data(".bss")->empty());
    EXPECT_TRUE(file->section_data(".absent")->empty());
    file->drop_cached_data();
    EXPECT_EQ(text_of(*file->section_data(".text")), "code");
  }
}

TEST(ElfFile, FileThatShrinksIsAnError) {
  ElfBuilder builder;
  builder.add_section(".text", SHT_PROGBITS, Bytes(100'000), SHF_EXECINSTR);
  TemporaryTree tree;
  std::string path = tree.write("a.so", builder.build());
  auto file = ElfFile::open(path);
  ASSERT_TRUE(file);
  ASSERT_EQ(truncate(path.c_str(), 1000), 0);
  auto data = (*file)->section_data(".text");
  ASSERT_FALSE(data);
  EXPECT_NE(data.error().message.find("ends at byte 1000"), std::string::npos);
}

TEST(ElfFile, SectionOutsideTheFileIsAnError) {
  for (uint64_t offset : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 4, uint64_t{1} << 63}) {
    ElfBuilder builder;
    builder.add_section(".eh_frame", SHT_PROGBITS, ElfBuilder::bytes("12345678"));
    builder.sections.back().row.sh_offset = offset;
    auto file = open_bytes(builder.build());
    auto data = file->section_data(".eh_frame");
    ASSERT_FALSE(data);
    EXPECT_NE(data.error().message.find("lies outside the file"), std::string::npos);
  }
}

TEST(ElfFile, BrokenSectionTableLeavesTheSegments) {
  auto break_it = [](void (*how)(Elf64_Ehdr*)) {
    ElfBuilder builder;
    builder.add_section(".text", SHT_PROGBITS, ElfBuilder::bytes("code"));
    builder.add_segment(PF_R | PF_X, 0, 0, 64);
    builder.adjust_header = how;
    auto file = open_bytes(builder.build());
    EXPECT_EQ(file->segments().size(), 1u);
    EXPECT_TRUE(file->sections().empty());
    EXPECT_TRUE(file->section_data(".text")->empty());
    return file->section_problem();
  };
  EXPECT_NE(break_it([](Elf64_Ehdr* h) { h->e_shoff = ~uint64_t{0}; }), "");
  EXPECT_NE(break_it([](Elf64_Ehdr* h) { h->e_shnum = 0xfe00; }), "");
  EXPECT_NE(break_it([](Elf64_Ehdr* h) { h->e_shentsize = 63; }), "");
  EXPECT_NE(break_it([](Elf64_Ehdr* h) { h->e_shstrndx = 0x7000; }), "");
  EXPECT_EQ(break_it([](Elf64_Ehdr* h) { h->e_shoff = 0, h->e_shnum = 0; }), "");
}

TEST(ElfFile, OddProgramHeadersAreRefused) {
  auto break_it = [](void (*how)(Elf64_Ehdr*)) {
    ElfBuilder builder;
    builder.add_segment(PF_R | PF_X, 0, 0, 64);
    builder.adjust_header = how;
    return refusal(builder.build());
  };
  EXPECT_EQ(break_it([](Elf64_Ehdr* h) { h->e_phentsize = 55; }), "test.so: program headers of 55 bytes, not 56");
  EXPECT_NE(break_it([](Elf64_Ehdr* h) { h->e_phoff = ~uint64_t{0} - 8; }), "");
  EXPECT_NE(break_it([](Elf64_Ehdr* h) { h->e_phnum = 60'000; }), "");
  ElfBuilder wrapping;
  wrapping.add_segment(PF_R | PF_X, 0, ~uint64_t{0} - 10, 64);
  EXPECT_NE(refusal(wrapping.build()).find("wraps around"), std::string::npos);
}

// More than 0xff00 sections: the counts are in section 0.
TEST(ElfFile, ExtendedSectionNumbering) {
  ElfBuilder builder;
  for (int i = 0; i < 0xff10; ++i) builder.add_section(".s" + std::to_string(i), SHT_PROGBITS);
  builder.add_section(".last", SHT_PROGBITS, ElfBuilder::bytes("end"));
  builder.sections[0].row.sh_size = builder.sections.size() + 1;
  builder.sections[0].row.sh_link = static_cast<uint32_t>(builder.sections.size());
  builder.adjust_header = [](Elf64_Ehdr* h) { h->e_shnum = 0, h->e_shstrndx = SHN_XINDEX; };
  auto file = open_bytes(builder.build());
  EXPECT_EQ(file->section_problem(), "");
  EXPECT_EQ(text_of(*file->section_data(".last")), "end");
}

TEST(ElfFile, BuildIdFromSectionOrSegment) {
  ElfBuilder builder;
  builder.add_build_id("\x01\xab\xff");
  EXPECT_EQ(to_hex(open_bytes(builder.build())->build_id()), "01abff");

  ElfBuilder segment_only;
  segment_only.add_build_id("\x02\xcd");
  segment_only.add_segment(PF_R, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), 0, 20);
  segment_only.segments[0].p_type = PT_NOTE;
  segment_only.adjust_header = [](Elf64_Ehdr* h) { h->e_shoff = 0, h->e_shnum = 0; };
  EXPECT_EQ(to_hex(open_bytes(segment_only.build())->build_id()), "02cd");

  ElfBuilder hostile;
  hostile.add_section(".note", SHT_NOTE, Bytes(16, std::byte{0xff}));
  EXPECT_TRUE(open_bytes(hostile.build())->build_id().empty());
}

TEST(ElfFile, DebugLink) {
  ElfBuilder builder;
  builder.add_debug_link("lib.debug", 0x12345678);
  auto link = open_bytes(builder.build())->debug_link();
  ASSERT_TRUE(link);
  EXPECT_EQ(link->file_name, "lib.debug");
  EXPECT_EQ(link->crc, 0x12345678u);
  ElfBuilder endless;
  endless.add_section(".gnu_debuglink", SHT_PROGBITS, ElfBuilder::bytes("lib.debug"));
  EXPECT_FALSE(open_bytes(endless.build())->debug_link());
}

TEST(ElfFile, SymbolsOfBothTablesAndOnlyCode) {
  ElfBuilder builder;
  uint32_t text = builder.add_section(".text", SHT_PROGBITS, Bytes(16), SHF_EXECINSTR);
  uint32_t data = builder.add_section(".data", SHT_PROGBITS, Bytes(16), SHF_WRITE);
  auto section = [](uint32_t number) { return static_cast<uint16_t>(number); };
  builder.add_symbols({{"main", 0x10, 4, STT_FUNC, section(text)},
                       {"label", 0x14, 0, STT_NOTYPE, section(text)},
                       {"__data_start", 0x20, 0, STT_NOTYPE, section(data)},
                       {"object", 0x20, 8, STT_OBJECT, section(data)},
                       {"imported", 0, 0, STT_FUNC, SHN_UNDEF},
                       {"", 0x18, 0, STT_FUNC, section(text)}});
  builder.add_symbols({{"memcpy", 0x30, 4, STT_GNU_IFUNC, section(text)}}, SHT_DYNSYM);
  auto file = open_bytes(builder.build());
  auto symbols = file->symbols();
  ASSERT_TRUE(symbols) << symbols.error().message;
  file->drop_cached_data();  // names stay valid
  std::vector<std::string> names;
  for (const Symbol& symbol : *symbols) names.emplace_back(symbol.name);
  EXPECT_EQ(names, (std::vector<std::string>{"main", "label", "memcpy"}));
  EXPECT_EQ((*symbols)[0].address, 0x10u);
  EXPECT_EQ((*symbols)[0].size, 4u);
}

TEST(ElfFile, ADollarBeginsMappingSymbolsOfArmAndFunctionsOfSwift) {
  for (uint16_t machine : {EM_AARCH64, EM_X86_64}) {
    ElfBuilder builder(ET_DYN, machine);
    const auto text = static_cast<uint16_t>(builder.add_section(".text", SHT_PROGBITS, Bytes(64), SHF_EXECINSTR));
    builder.add_symbols({{"$x", 0x10, 0, STT_NOTYPE, text},
                         {"$d.17", 0x14, 0, STT_NOTYPE, text},
                         {"$s4main3fooyyF", 0x18, 8, STT_FUNC, text}});
    auto file = open_bytes(builder.build());
    auto symbols = file->symbols();
    ASSERT_TRUE(symbols);
    EXPECT_EQ(symbols->size(), machine == EM_AARCH64 ? 1u : 3u);
    EXPECT_EQ(symbols->back().name, "$s4main3fooyyF");
  }
}

Bytes xz_packed(const Bytes& plain) {
  Bytes packed(lzma_stream_buffer_bound(plain.size()));
  size_t used = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, nullptr, reinterpret_cast<const uint8_t*>(plain.data()), plain.size(),
                                    reinterpret_cast<uint8_t*>(packed.data()), &used, packed.size()),
            LZMA_OK);
  packed.resize(used);
  return packed;
}

TEST(ElfFile, SymbolsInsideGnuDebugdata) {
  ElfBuilder inner;
  inner.add_section(".text", SHT_NOBITS, {}, SHF_EXECINSTR);
  inner.add_symbols({{"hidden_function", 0x40, 4}});
  Bytes packed = xz_packed(inner.build());
  auto outer = [](const Bytes& content) {
    ElfBuilder builder;
    builder.add_section(".text", SHT_PROGBITS, Bytes(128), SHF_EXECINSTR);
    builder.add_symbols({{"exported", 0x10, 4}}, SHT_DYNSYM);
    builder.add_section(".gnu_debugdata", SHT_PROGBITS, content);
    return open_bytes(builder.build());
  };
  auto file = outer(packed);
  for (int pass = 0; pass < 2; ++pass) {
    auto symbols = file->symbols();
    ASSERT_TRUE(symbols) << symbols.error().message;
    ASSERT_EQ(symbols->size(), 2u);
    EXPECT_EQ((*symbols)[0].name, "hidden_function");
    EXPECT_EQ((*symbols)[1].name, "exported");
    file->drop_cached_data();
  }
  Bytes cut(packed.begin(), packed.begin() + static_cast<long>(packed.size() / 2));
  EXPECT_FALSE(outer(cut)->symbols());
  EXPECT_FALSE(outer(ElfBuilder::bytes("not xz"))->symbols());
  EXPECT_FALSE(outer(xz_packed(Bytes(70 << 20)))->symbols());  // 10 KB that would be 70 MB
}

// A file whose section headers were cut off, as by sstrip: what the loader needs is still there. The tables lie at
// 0x1000 (symbols), 0x1100 (names), 0x1200 (GNU's hash table), 0x1300 (the old one), 0x1400 (dynamic).
Bytes without_sections(bool gnu_hash, bool old_hash, uint64_t names_size = 16) {
  ElfBuilder builder;
  Bytes content(0x500);
  auto put = [&](size_t at, auto value) { memcpy(content.data() + at, &value, sizeof value); };
  const char names[] = "\0first\0second";
  memcpy(content.data() + 0x100, names, sizeof names);
  for (auto [row, name, section] : {std::tuple{1u, 1u, 0}, {2u, 7u, 5}, {3u, 1u, 5}}) {
    Elf64_Sym symbol = {};
    symbol.st_name = name;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = static_cast<uint16_t>(section);
    symbol.st_value = 0x1000 + row * 16;
    symbol.st_size = 16;
    put(row * sizeof symbol, symbol);
  }
  const uint32_t gnu[] = {2, 2, 1, 0, 0, 0, 0, 2, 0x10, 0x11};  // buckets, first symbol, one bloom word, both in bucket 2's chain
  memcpy(content.data() + 0x200, gnu, sizeof gnu);
  put(0x300, uint32_t{1});
  put(0x304, uint32_t{4});
  size_t at = 0x400;
  auto entry = [&](int64_t tag, uint64_t value) { put(at, tag), put(at + 8, value), at += 16; };
  entry(DT_SYMTAB, 0x1000);
  entry(DT_SYMENT, sizeof(Elf64_Sym));
  entry(DT_STRTAB, 0x1100);
  entry(DT_STRSZ, names_size);
  if (gnu_hash) entry(DT_GNU_HASH, 0x1200);
  if (old_hash) entry(DT_HASH, 0x1300);
  builder.add_section(".all", SHT_PROGBITS, content);
  builder.add_segment(PF_R | PF_X, 0, 0, 0x500);
  builder.add_segment(PF_R, 0, 0x1400, 0x100);
  builder.segments[1].p_type = PT_DYNAMIC;
  builder.adjust_header = [](Elf64_Ehdr* header) { header->e_shoff = 0; };
  // The contents follow the program headers, 8-aligned, and lie at 0x1000.
  builder.segments[0].p_offset = (sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + 7) / 8 * 8;
  builder.segments[0].p_vaddr = 0x1000;
  return builder.build();
}

TEST(ElfFile, SymbolsWithoutSectionHeaders) {
  for (auto [gnu, old] : {std::pair{true, false}, {false, true}, {true, true}}) {
    auto file = open_bytes(without_sections(gnu, old));
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->sections().empty());
    auto symbols = file->symbols();
    ASSERT_TRUE(symbols) << symbols.error().message;
    ASSERT_EQ(symbols->size(), 2u) << "the undefined one is none";
    EXPECT_EQ((*symbols)[0].name, "second");
    EXPECT_EQ((*symbols)[0].address, 0x1020u);
    EXPECT_EQ((*symbols)[1].name, "first");
  }
  EXPECT_FALSE(open_bytes(without_sections(false, false))->symbols()) << "how many is not known";
  EXPECT_FALSE(open_bytes(without_sections(true, false, uint64_t{1} << 60))->symbols()) << "names outside the file";
  std::mt19937 random(9);
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = without_sections(i % 2, i % 3);
    for (int n = 0; n < 4; ++n) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    auto file = ElfFile::from_memory(std::move(bytes), "mutated");
    if (file) (void)(*file)->symbols();
  }
}

TEST(ElfFile, HostileSymbolTables) {
  // A hundred thousand symbols, all with one name of many megabytes: refused, not a quadratic hang.
  ElfBuilder builder;
  builder.add_section(".text", SHT_PROGBITS, Bytes(16), SHF_EXECINSTR);
  Bytes table;
  for (int i = 0; i < 100'000; ++i) {
    Elf64_Sym row = {};
    row.st_name = 1;
    row.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    row.st_shndx = 1;
    ElfBuilder::append(&table, row);
  }
  Bytes names(8 << 20, std::byte{'a'});
  names.back() = std::byte{0};
  uint32_t strings = builder.add_section(".strtab", SHT_STRTAB, names);
  uint32_t number = builder.add_section(".symtab", SHT_SYMTAB, table);
  builder.sections[number].row.sh_link = strings;
  builder.sections[number].row.sh_entsize = sizeof(Elf64_Sym);
  ElfBuilder no_strings = builder, odd_entries = builder;
  EXPECT_FALSE(open_bytes(builder.build())->symbols());
  no_strings.sections[number].row.sh_link = 77;
  EXPECT_FALSE(open_bytes(no_strings.build())->symbols());
  odd_entries.sections[number].row.sh_entsize = 1;
  EXPECT_FALSE(open_bytes(odd_entries.build())->symbols());
}

// SYM-01: a fixed-address executable whose text is mapped with a file offset.
TEST(ElfFileAddresses, FixedAddressExecutableHasNoBias) {
  ElfBuilder builder(ET_EXEC);
  builder.add_segment(PF_R, 0, 0x200000, 0x252e000);
  builder.add_segment(PF_R | PF_X, 0x252f000, 0x272e000, 0x43db000);
  auto file = open_bytes(builder.build());
  EXPECT_EQ(file->load_bias(0x272e000, 0x252f000), 0u);
  EXPECT_EQ(file->svma_to_file_offset(0x272e010), 0x252f010u);
  EXPECT_EQ(file->file_offset_to_svma(0x252f010), 0x272e010u);
}

// SYM-03: lld lays segments one after the other in the file, so two of them share a page and p_offset != p_vaddr.
TEST(ElfFileAddresses, SegmentsThatShareAPageOfTheFile) {
  ElfBuilder builder;
  builder.add_segment(PF_R, 0, 0, 0x6a4);
  builder.add_segment(PF_R | PF_X, 0x6b0, 0x16b0, 0x1b0);
  builder.add_segment(PF_R | PF_W, 0x860, 0x2860, 0x1a0);
  auto file = open_bytes(builder.build());
  uint64_t base = 0x555555554000;
  EXPECT_EQ(file->load_bias(base + 0x1000, 0), base);
  EXPECT_EQ(file->load_bias(base, 0, /*executable=*/false), base);
  EXPECT_EQ(file->file_offset_to_svma(0x6c0), 0x16c0u);
  EXPECT_EQ(file->svma_to_file_offset(0x16c0), 0x6c0u);
  EXPECT_EQ(file->svma_to_file_offset(0x10), 0x10u);
  EXPECT_EQ(file->svma_to_file_offset(0x1000), std::nullopt);
}

TEST(ElfFileAddresses, SeveralExecutableSegmentsAndSplitMappings) {
  ElfBuilder builder;
  builder.add_segment(PF_R | PF_X, 0x1000, 0x1000, 0x1345);
  builder.add_segment(PF_R | PF_X, 0x2350, 0x8350, 0x2000);
  auto file = open_bytes(builder.build());
  uint64_t base = 0x7f0000000000;
  EXPECT_EQ(file->load_bias(base + 0x1000, 0x1000), base);
  EXPECT_EQ(file->load_bias(base + 0x8000, 0x2000), base);  // the second segment's first page, though the first ends there
  EXPECT_EQ(file->load_bias(base + 0x9000, 0x3000), base);  // a piece of the second, split by mprotect
  EXPECT_EQ(file->load_bias(base, 0x100000), std::nullopt);
}

TEST(ElfFileAddresses, Aarch64PagesOf64K) {
  ElfBuilder builder(ET_DYN, EM_AARCH64);
  builder.add_segment(PF_R, 0, 0, 0x18000);
  builder.add_segment(PF_R | PF_X, 0x18000, 0x28000, 0x10000);
  auto file = open_bytes(builder.build());
  EXPECT_EQ(file->load_bias(0xaaaa00020000, 0x10000), 0xaaaa00000000u);
  EXPECT_EQ(file->load_bias(0xaaaa00028000, 0x18000), 0xaaaa00000000u);  // the same file where pages are of 4 KB
}

TEST(ElfFileAddresses, ReadAtSvmaZeroFillsAndStopsAtHoles) {
  ElfBuilder builder;
  builder.add_section(".text", SHT_PROGBITS, ElfBuilder::bytes("0123456789abcdef"));
  builder.add_segment(PF_R, sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), 0x1000, 16, 32);
  builder.sections[1].row.sh_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  auto file = open_bytes(builder.build());
  Bytes into(8);
  ASSERT_TRUE(file->read_at_svma(0x100c, into));
  EXPECT_EQ(text_of(into), std::string("cdef\0\0\0\0", 8));
  EXPECT_FALSE(file->read_at_svma(0x101c, into));
  EXPECT_FALSE(file->read_at_svma(0xfff, into));
  EXPECT_FALSE(file->read_at_svma(~uint64_t{0} - 3, into));
}

// Everything that a user of ElfFile does; it may fail but must return.
size_t exercise(ElfFile& file) {
  size_t seen = file.build_id().size() + file.debug_link().has_value() + file.eh_frame_header_range().has_value();
  auto symbols = file.symbols();
  if (symbols) seen += symbols->size();
  for (const Section& section : file.sections()) {
    auto data = file.section_data(section);
    if (data && !data->empty()) seen += static_cast<size_t>(data->back());
  }
  std::byte word[8];
  for (const Segment& segment : file.segments()) {
    seen += file.read_at_svma(segment.vaddr, word).has_value();
    seen += file.load_bias(0x10000, segment.file_offset).has_value();
    seen += file.svma_to_file_offset(segment.vaddr + segment.file_size - 1).has_value();
  }
  return seen;
}

Bytes small_file() {
  ElfBuilder builder;
  builder.add_section(".text", SHT_PROGBITS, Bytes(64), SHF_EXECINSTR);
  builder.add_build_id("0123456789");
  builder.add_debug_link("x.debug", 1);
  builder.add_symbols({{"main", 0x10, 4}, {"other", 0x20, 4}});
  builder.add_segment(PF_R | PF_X, 0, 0, 4096);
  return builder.build();
}

// Makes a few bytes of [from, from + length) random or absurd.
class Mutator {
 public:
  void try_one(const Bytes& image, size_t from, size_t length) {
    constexpr uint8_t kAbsurd[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe};
    Bytes changed = image;
    for (unsigned n = 1 + random_() % 4; n > 0; --n) {
      changed[from + random_() % length] = static_cast<std::byte>(random_() % 2 ? random_() : kAbsurd[random_() % 6]);
    }
    auto file = ElfFile::from_memory(std::move(changed), "mutated");
    if (file) exercise(**file);
  }

 private:
  std::mt19937 random_{1};
};

TEST(ElfFileHostile, MutatedFiles) {
  Mutator mutator;
  Bytes small = small_file();
  for (int i = 0; i < 20'000; ++i) mutator.try_one(small, 0, small.size());
  auto vdso = read_own_vdso();
  ASSERT_TRUE(vdso);
  for (int i = 0; i < 4'000; ++i) mutator.try_one(*vdso, 0, vdso->size());
}

TEST(ElfFileHostile, MutatedHeadersOfARealProgram) {
  auto fd = open_read("/proc/self/exe");
  ASSERT_TRUE(fd);
  Bytes real = *read_all(fd->get(), 1 << 30, "self");
  size_t table = real.size() - open_bytes(real)->sections().size() * sizeof(Elf64_Shdr);
  Mutator mutator;
  for (int i = 0; i < 8; ++i) {
    mutator.try_one(real, 0, 1024);
    mutator.try_one(real, table, real.size() - table);
  }
}

TEST(ElfFileHostile, CutAtEveryLength) {
  Bytes small = small_file();
  for (size_t length = 0; length < small.size(); ++length) {
    auto file = ElfFile::from_memory(Bytes(small.begin(), small.begin() + static_cast<long>(length)), "cut");
    if (file) exercise(**file);
  }
}

TEST(ElfFile, ReadsItself) {
  auto file = ElfFile::open("/proc/self/exe");
  ASSERT_TRUE(file);
  auto symbols = (*file)->symbols();
  ASSERT_TRUE(symbols);
  bool main_found = std::any_of(symbols->begin(), symbols->end(), [](const Symbol& s) { return s.name == "main"; });
  EXPECT_TRUE(main_found);
  EXPECT_TRUE((*file)->eh_frame_header_range());
}

}  // namespace
}  // namespace cprof::object
