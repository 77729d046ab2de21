#include <gtest/gtest.h>

#include <string>

#include "symbolize/symbolizer.h"

namespace cprof::symbolize {
namespace {

std::string_view name_at(const PerfMap& map, uint64_t address) {
  auto entry = map.find(address);
  return entry ? entry->name : "(none)";
}

TEST(PerfMap, LaterEntriesWinOverWhatTheyOverlap) {
  PerfMap map = PerfMap::parse("2000 40 old\n2000 40 replaced\n2020 8 patch\n");
  EXPECT_EQ(name_at(map, 0x2008), "replaced");
  EXPECT_EQ(name_at(map, 0x2024), "patch");
  EXPECT_EQ(name_at(map, 0x2030), "replaced");
  EXPECT_EQ(name_at(map, 0x2040), "(none)");
  EXPECT_EQ(name_at(map, 0x1fff), "(none)");
}

TEST(PerfMap, AnEarlierSmallOneUnderALaterLargeOneIsGone) {
  PerfMap map = PerfMap::parse("2010 4 inner\n2000 40 outer\n");
  EXPECT_EQ(name_at(map, 0x2012), "outer");
}

TEST(PerfMap, GivesTheEntryAsWritten) {
  PerfMap map = PerfMap::parse("0x7f0000001000 0x100 LazyCompile:~run /app/main.js:10\n");
  auto entry = map.find(0x7f0000001010);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->start, 0x7f0000001000u);
  EXPECT_EQ(entry->size, 0x100u);
  EXPECT_EQ(entry->name, "LazyCompile:~run /app/main.js:10");
}

TEST(PerfMap, SkipsWhatIsMalformedAndTheUnfinishedLastLine) {
  PerfMap map = PerfMap::parse(
      "# comment\n\nzz 10 bad\n3000 10\n3000 10 \n-1 5 sign\n3000 10 good\r\nffffffffffffffff 2 wraps\n3100 10 being wri");
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(name_at(map, 0x3000), "good");
  EXPECT_EQ(name_at(map, 0x3100), "(none)");
}

TEST(PerfMap, SizeZeroCoversItsStartOnly) {
  PerfMap map = PerfMap::parse("4000 0 stub\n");
  EXPECT_EQ(name_at(map, 0x4000), "stub");
  EXPECT_EQ(name_at(map, 0x4001), "(none)");
}

TEST(PerfMap, UnsortedMillionLines) {
  std::string text;
  constexpr uint64_t kCount = 1'000'000;
  for (uint64_t i = 0; i < kCount; i++) {
    uint64_t slot = i * 7919 % kCount;  // a permutation
    char line[64];
    snprintf(line, sizeof line, "%lx 20 f%lu\n", 0x10000 + slot * 0x20, slot);
    text += line;
  }
  PerfMap map = PerfMap::parse(text);
  EXPECT_EQ(map.size(), kCount);
  for (uint64_t slot : {0ul, 1ul, 500'000ul, kCount - 1}) {
    EXPECT_EQ(name_at(map, 0x10000 + slot * 0x20 + 0x1f), "f" + std::to_string(slot));
  }
}

}  // namespace
}  // namespace cprof::symbolize
