#include "pipeline/snapshot_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cprof::pipeline {
namespace {

using Read = unwind::Memory::Read;

std::vector<std::byte> words(std::vector<uint64_t> values) {
  auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(SnapshotMemory, ReadsInsideTheSnapshotOnly) {
  auto stack = words({1, 2, 3});
  SnapshotMemory memory;
  memory.reset(0x7000, stack, false, nullptr);
  uint64_t value = 0;
  EXPECT_EQ(memory.read_u64(0x7010, value), Read::kOk);
  EXPECT_EQ(value, 3u);
  EXPECT_EQ(memory.read_u64(0x7011, value), Read::kUnreadable) << "the last bytes reach over the end";
  EXPECT_EQ(memory.read_u64(0x7018, value), Read::kUnreadable);
  EXPECT_EQ(memory.read_u64(0x6ff8, value), Read::kUnreadable);
}

TEST(SnapshotMemory, TellsAWalkThatComesNearTheEndOfAFullSnapshot) {
  auto stack = words({1, 2, 3, 4});
  SnapshotMemory memory;
  uint64_t value = 0;
  for (bool is_full : {false, true}) {
    memory.reset(0x7000, stack, is_full, nullptr);
    memory.read_u64(0x7010, value);
    EXPECT_FALSE(memory.nearly_cut());
    memory.read_u64(0x7018, value);
    EXPECT_EQ(memory.nearly_cut(), is_full);
  }
}

TEST(SnapshotMemory, AFullSnapshotMayGoOnAbove) {
  auto stack = words({1, 2});
  SnapshotMemory memory;
  memory.reset(0x7000, stack, true, [](uint64_t, std::span<std::byte>) -> size_t { return 0; });
  uint64_t value = 0;
  EXPECT_EQ(memory.read_u64(0x7010, value), Read::kBeyondSnapshot);
  EXPECT_EQ(memory.read_u64(0x1000, value), Read::kUnreadable);
}

TEST(SnapshotMemory, AsksTheLiveThreadOnceAPageAndKeepsWhatItSaid) {
  auto stack = words({1});
  int asked = 0;
  SnapshotMemory memory;
  memory.reset(0x7000, stack, false, [&](uint64_t address, std::span<std::byte> into) {
    asked++;
    uint64_t text = address;
    memcpy(into.data(), &text, 8);
    return into.size();
  });
  uint64_t value = 0;
  EXPECT_EQ(memory.read_u64(0x20f0, value), Read::kOk);
  EXPECT_EQ(value, 0x20f0u);
  EXPECT_EQ(memory.read_u64(0x20f8, value), Read::kOk);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(memory.used_outside());
  ASSERT_EQ(memory.live_pieces().size(), 1u);
  EXPECT_EQ(memory.live_pieces()[0].address, 0x20f0u);

  SnapshotMemory replayed;
  replayed.reset(0x7000, stack, false, nullptr);
  replayed.add_piece(memory.live_pieces()[0].address, memory.live_pieces()[0].bytes);
  EXPECT_EQ(replayed.read_u64(0x20f0, value), Read::kOk);
  EXPECT_EQ(value, 0x20f0u);
  EXPECT_TRUE(replayed.live_pieces().empty());
}

TEST(SnapshotMemory, TheLiveThreadIsNotAskedWithoutEnd) {
  int asked = 0;
  SnapshotMemory memory;
  memory.reset(0x7000, {}, false, [&](uint64_t, std::span<std::byte>) -> size_t { return asked++, 0; });
  uint64_t value = 0;
  for (uint64_t i = 0; i < 1000; i++) EXPECT_EQ(memory.read_u64(0x100000 + i * 4096, value), Read::kUnreadable);
  EXPECT_LE(asked, 16);
}

}  // namespace
}  // namespace cprof::pipeline
