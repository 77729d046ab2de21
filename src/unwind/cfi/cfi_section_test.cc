#include "unwind/cfi/cfi_section.h"

#include <gtest/gtest.h>

#include "unwind/cfi/cfi_bytes_for_tests.h"

namespace cprof::unwind {
namespace {

std::vector<Fde> all_fdes(CfiSection& section) {
  std::vector<Fde> all;
  section.for_each_fde([&](const Fde& fde) { all.push_back(fde); });
  return all;
}

TEST(CfiSection, ReadsEveryFormatAndSize) {
  for (bool is_eh : {true, false})
    for (bool is_64bit : {true, false}) {
      SectionWriter writer(is_eh, 0x100000, is_64bit);
      size_t cie = writer.usual_cie();
      size_t offset = writer.fde(cie, 0x4000, 0x20, {});
      CfiSource source = writer.source();
      CfiSection section(source);
      auto all = all_fdes(section);
      ASSERT_EQ(all.size(), 1u) << is_eh << is_64bit;
      EXPECT_EQ(all[0].start, 0x4000u);
      EXPECT_EQ(all[0].end, 0x4020u);
      EXPECT_EQ(all[0].cie->data_align, -8);
      EXPECT_EQ(all[0].cie->return_register, 16u);
      EXPECT_EQ(all[0].cie->instructions.size(), 5u);
      EXPECT_EQ(section.fde_at(offset)->start, 0x4000u);
      EXPECT_EQ(section.broken_entries(), 0u);
    }
}

struct EncodingCase {
  int encoding;
  int size;        // bytes; 0: LEB
  uint64_t base;   // what is added
};
class PointerEncoding : public testing::TestWithParam<EncodingCase> {};

TEST_P(PointerEncoding, GivesTheAddress) {
  auto [encoding, size, base] = GetParam();
  constexpr uint64_t kTarget = 0x7000;
  SectionWriter writer(true, 0x6000);
  size_t cie = writer.usual_cie("zR", encoding);
  uint64_t relative = kTarget - ((encoding & 0x70) == 0x10 ? writer.field_svma(4) - 4 : base);
  Bytes body;
  auto put = [&](uint64_t value) {
    if (size == 2) body.u16(value);
    if (size == 4) body.u32(value);
    if (size == 8) body.u64(value);
    if (size == 0 && (encoding & 8)) body.sleb(static_cast<int64_t>(value));
    if (size == 0 && !(encoding & 8)) body.uleb(value);
  };
  put(relative);
  put(0x10);
  writer.raw_fde(cie, body.uleb(0));
  CfiSource source = writer.source();
  source.text_svma = 0x1000;
  source.data_svma = 0x2000;
  CfiSection section(source);
  auto all = all_fdes(section);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].start, kTarget);
  EXPECT_EQ(all[0].end, kTarget + 0x10);
}
INSTANTIATE_TEST_SUITE_P(All, PointerEncoding,
                         testing::Values(EncodingCase{0x00, 8, 0}, EncodingCase{0x01, 0, 0}, EncodingCase{0x02, 2, 0},
                                         EncodingCase{0x03, 4, 0}, EncodingCase{0x04, 8, 0}, EncodingCase{0x09, 0, 0},
                                         EncodingCase{0x0a, 2, 0}, EncodingCase{0x0b, 4, 0}, EncodingCase{0x0c, 8, 0},
                                         EncodingCase{0x1b, 4, 0}, EncodingCase{0x1c, 8, 0}, EncodingCase{0x1a, 2, 0},
                                         EncodingCase{0x23, 4, 0x1000}, EncodingCase{0x3b, 4, 0x2000},
                                         EncodingCase{0x19, 0, 0}, EncodingCase{0x10, 8, 0}));

TEST(CfiSection, AugmentationLetters) {
  SectionWriter writer(true);
  Bytes body{1};
  body.text("zPLRSB").uleb(1).sleb(-8).u8(16);
  Bytes data{0x9b};  // P: indirect pc-relative sdata4
  data.u32(0x1234).u8(0x1b).u8(0x03);
  writer.cie(body.uleb(data.size()).add(data));
  Bytes fde;
  fde.u32(0x5000).u32(8).uleb(4).u32(0);
  writer.raw_fde(0, fde.u8(0x0a));
  CfiSource source = writer.source();
  CfiSection section(source);
  auto all = all_fdes(section);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].start, 0x5000u);
  EXPECT_TRUE(all[0].cie->is_signal_frame);
  EXPECT_TRUE(all[0].cie->uses_b_key);
  ASSERT_EQ(all[0].instructions.size(), 1u);
  EXPECT_EQ(all[0].instructions[0], std::byte{0x0a});
}

TEST(CfiSection, UnknownLettersBehindZAreSkippedByLength) {
  SectionWriter writer(true);
  Bytes body{1};
  body.text("zR?").uleb(1).sleb(-8).u8(16).uleb(5).u8(0x03).u32(77);
  writer.cie(body.u8(0));
  Bytes fde;
  fde.u32(0x5000).u32(8).uleb(0);
  writer.raw_fde(0, fde);
  CfiSource source = writer.source();
  CfiSection section(source);
  EXPECT_EQ(all_fdes(section).size(), 1u);
}

TEST(CfiSection, OldGccAugmentationAndVersion4) {
  SectionWriter old(true);
  Bytes body{1};
  old.cie(body.text("eh").u64(5).uleb(1).sleb(-8).u8(16));
  old.fde(0, 0x10, 4, {}, false);
  CfiSource old_source = old.source();
  CfiSection old_section(old_source);
  EXPECT_EQ(all_fdes(old_section).size(), 1u);

  SectionWriter four(false);
  Bytes body4{4};
  four.cie(body4.text("").u8(8).u8(0).uleb(4).sleb(-8).uleb(30));
  four.fde(0, 0x10, 4, {}, false);
  CfiSource source4 = four.source();
  CfiSection section4(source4);
  auto all = all_fdes(section4);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].cie->code_align, 4u);
  EXPECT_EQ(all[0].cie->return_register, 30u);
}

TEST(CfiSection, BrokenEntriesAreCountedAndTheRestIsRead) {
  SectionWriter writer(true);
  size_t good = writer.usual_cie();
  Bytes bad_body{9};
  size_t bad = writer.cie(bad_body.text("zR"));
  writer.fde(bad, 0x10, 4, {});
  writer.raw_fde(good, Bytes{1, 2, 3});              // too short
  writer.fde(good, 0x1000, ~uint64_t{0}, {});        // wraps
  writer.fde(writer.bytes().size() + 4, 0x10, 4, {});  // CIE pointer is 0: reads as a CIE
  writer.fde(0x500000, 0x10, 4, {});                 // CIE outside
  writer.bytes().u32(0);                             // a terminator in the middle
  writer.fde(good, 0x2000, 4, {});
  CfiSource source = writer.source();
  CfiSection section(source);
  auto all = all_fdes(section);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].start, 0x2000u);
  EXPECT_EQ(section.broken_entries(), 4u);
}

TEST(CfiSection, ATruncatedSectionEndsQuietly) {
  SectionWriter writer(true);
  size_t cie = writer.usual_cie();
  writer.fde(cie, 0x10, 4, {});
  writer.fde(cie, 0x20, 4, {});
  CfiSource whole = writer.source();
  for (size_t size = 0; size < whole.bytes.size(); size++) {
    CfiSource cut = whole;
    cut.bytes.resize(size);
    CfiSection section(cut);
    EXPECT_LE(all_fdes(section).size(), 1u);
  }
}

TEST(CfiSection, AZeroEndsASectionOfUnknownSize) {
  SectionWriter writer(true);
  size_t cie = writer.usual_cie();
  writer.fde(cie, 0x10, 4, {});
  writer.bytes().u32(0);
  writer.fde(cie, 0x20, 4, {});
  CfiSource source = writer.source();
  source.ends_at_zero = true;
  CfiSection section(source);
  EXPECT_EQ(all_fdes(section).size(), 1u);
}

}  // namespace
}  // namespace cprof::unwind
