#include "object/elf_decompress.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>
#include <zstd.h>

#include "object/decompress.h"
#include "object/elf_builder.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

namespace cprof::object {
namespace {

using Bytes = ElfBuilder::Bytes;

Bytes zlib_packed(const Bytes& plain) {
  uLongf size = compressBound(plain.size());
  Bytes packed(size);
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(plain.data()), plain.size()), Z_OK);
  packed.resize(size);
  return packed;
}

Bytes zstd_packed(const Bytes& plain) {
  Bytes packed(ZSTD_compressBound(plain.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
  return packed;
}

Bytes with_header(uint32_t kind, uint64_t size, const Bytes& packed) {
  Elf64_Chdr header = {kind, 0, size, 1};
  Bytes content;
  ElfBuilder::append(&content, header);
  content.insert(content.end(), packed.begin(), packed.end());
  return content;
}

Bytes with_gnu_header(uint64_t size, const Bytes& packed) {
  Bytes content = ElfBuilder::bytes("ZLIB");
  ElfBuilder::append(&content, __builtin_bswap64(size));
  content.insert(content.end(), packed.begin(), packed.end());
  return content;
}

Bytes sample_text() {
  Bytes text;
  for (int i = 0; i < 30'000; ++i) text.push_back(static_cast<std::byte>((i * i) >> 5));
  return text;
}

std::shared_ptr<ElfFile> file_with(const std::string& name, const Bytes& content, uint64_t flags) {
  ElfBuilder builder;
  builder.add_section(".text", SHT_PROGBITS, Bytes(64), SHF_EXECINSTR);
  builder.add_section(name, SHT_PROGBITS, content, flags);
  builder.add_symbols({{"main", 0x10, 4}});
  auto file = ElfFile::from_memory(builder.build(), "test.so");
  EXPECT_TRUE(file);
  return *file;
}

long peak_kilobytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

bool equal(std::span<const std::byte> a, const Bytes& b) { return std::ranges::equal(a, b); }

// DBG-06, DBG-07: every convention gives the same bytes.
TEST(CompressedSections, AllConventionsReadTheSame) {
  Bytes plain = sample_text();
  Bytes two_frames = zstd_packed(Bytes(plain.begin(), plain.begin() + 1000));
  Bytes second = zstd_packed(Bytes(plain.begin() + 1000, plain.end()));
  two_frames.insert(two_frames.end(), second.begin(), second.end());
  std::shared_ptr<ElfFile> files[] = {
      file_with(".debug_info", plain, 0),
      file_with(".debug_info", with_header(ELFCOMPRESS_ZLIB, plain.size(), zlib_packed(plain)), SHF_COMPRESSED),
      file_with(".debug_info", with_header(ELFCOMPRESS_ZSTD, plain.size(), zstd_packed(plain)), SHF_COMPRESSED),
      file_with(".debug_info", with_header(ELFCOMPRESS_ZSTD, plain.size(), two_frames), SHF_COMPRESSED),
      file_with(".zdebug_info", with_gnu_header(plain.size(), zlib_packed(plain)), 0),
      file_with(".zdebug_info", plain, 0),  // binutils leaves a section plain that would not shrink
  };
  for (auto& file : files) {
    auto data = file->section_data(".debug_info");
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_TRUE(equal(*data, plain));
    Bytes appended(3);
    ASSERT_TRUE(file->append_section_data(*file->find_section(".debug_info"), &appended));
    EXPECT_EQ(appended.size(), plain.size() + 3);
    EXPECT_EQ(file->section_data_size(*file->find_section(".debug_info")), plain.size());
  }
}

TEST(CompressedSections, LiarsAreRefusedInLittleMemory) {
  long before = peak_kilobytes();
  Bytes packed = zlib_packed(sample_text()), zstd = zstd_packed(sample_text());
  for (uint64_t claim : {uint64_t{1} << 40, uint64_t{3} << 30, ~uint64_t{0}, uint64_t{60} << 20}) {
    for (auto& file : {file_with(".debug_info", with_header(ELFCOMPRESS_ZLIB, claim, packed), SHF_COMPRESSED),
                       file_with(".debug_info", with_header(ELFCOMPRESS_ZSTD, claim, zstd), SHF_COMPRESSED),
                       file_with(".zdebug_info", with_gnu_header(claim, packed), 0)}) {
      auto data = file->section_data(".debug_info");
      ASSERT_FALSE(data);
      EXPECT_NE(data.error().message.find("claim"), std::string::npos) << data.error().message;
      EXPECT_FALSE(decompressed_image(*file));
    }
  }
  EXPECT_LT(peak_kilobytes() - before, 100 << 10);
}

TEST(CompressedSections, MoreOrLessThanClaimedIsAnError) {
  Bytes plain = sample_text();
  for (size_t claim : {plain.size() - 1, plain.size() + 1, size_t{0}}) {
    CompressedBytes zlib{Compression::kZlib, claim, {}}, zstd{Compression::kZstd, claim, {}};
    Bytes zlib_bytes = zlib_packed(plain), zstd_bytes = zstd_packed(plain);
    zlib.bytes = zlib_bytes, zstd.bytes = zstd_bytes;
    EXPECT_FALSE(decompress(zlib, "x"));
    EXPECT_FALSE(decompress(zstd, "x"));
  }
}

TEST(CompressedSections, TruncatedOrDamagedIsAnError) {
  Bytes plain = sample_text();
  for (Compression kind : {Compression::kZlib, Compression::kZstd}) {
    Bytes packed = kind == Compression::kZlib ? zlib_packed(plain) : zstd_packed(plain);
    for (size_t length : {size_t{0}, size_t{1}, packed.size() / 2, packed.size() - 1}) {
      CompressedBytes cut{kind, plain.size(), std::span(packed).first(length)};
      EXPECT_FALSE(decompress(cut, "x")) << length;
    }
    packed[0] = std::byte{0xee};
    EXPECT_FALSE(decompress({kind, plain.size(), packed}, "x"));
  }
}

TEST(CompressedSections, RatioIsBoundedByTheClaim) {
  EXPECT_TRUE(check_unpacked_size(1'000'000, 1'000, "x"));        // small: up to what deflate can do
  EXPECT_FALSE(check_unpacked_size(2'000'000, 1'000, "x"));
  EXPECT_TRUE(check_unpacked_size(200'000'000, 1'000'000, "x"));
  EXPECT_FALSE(check_unpacked_size(300'000'000, 1'000'000, "x"));
  EXPECT_FALSE(check_unpacked_size((uint64_t{4} << 30) + 1, uint64_t{1} << 32, "x"));
}

TEST(CompressedSections, BrokenCompressionHeaders) {
  EXPECT_FALSE(file_with(".debug_info", Bytes(10), SHF_COMPRESSED)->section_data(".debug_info"));
  EXPECT_FALSE(file_with(".debug_info", with_header(9, 10, Bytes(10)), SHF_COMPRESSED)->section_data(".debug_info"));
}

TEST(DecompressedImage, HoldsPlainDebugSectionsAndSymbols) {
  Bytes plain = sample_text();
  auto file = file_with(".zdebug_info", with_gnu_header(plain.size(), zlib_packed(plain)), 0);
  EXPECT_TRUE(needs_decompression(*file));
  auto image = decompressed_image(*file);
  ASSERT_TRUE(image) << image.error().message;
  auto copy = ElfFile::from_memory(*image, "image");
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ((*copy)->section_problem(), "");
  EXPECT_FALSE(needs_decompression(**copy));
  ASSERT_NE((*copy)->find_section(".debug_info"), nullptr);
  EXPECT_EQ((*copy)->find_section(".debug_info")->name, ".debug_info");
  EXPECT_EQ((*copy)->find_section(".debug_info")->index, file->find_section(".debug_info")->index);
  EXPECT_TRUE(equal(*(*copy)->section_data(".debug_info"), plain));
  EXPECT_TRUE((*copy)->section_data(".text")->empty());
  auto symbols = (*copy)->symbols();
  ASSERT_TRUE(symbols);
  ASSERT_EQ(symbols->size(), 1u);
  EXPECT_EQ((*symbols)[0].name, "main");
}

TEST(DecompressedImage, PlainFilesNeedNone) { EXPECT_FALSE(needs_decompression(*file_with(".debug_info", Bytes(10), 0))); }

}  // namespace
}  // namespace cprof::object
