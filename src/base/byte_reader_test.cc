#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <array>

namespace cprof {
namespace {

template <size_t N>
std::array<std::byte, N> bytes(const uint8_t (&values)[N]) {
  std::array<std::byte, N> result;
  memcpy(result.data(), values, N);
  return result;
}

TEST(ByteReader, ReadsLittleEndianAndSwapped) {
  auto data = bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  ByteReader reader(data);
  EXPECT_EQ(reader.u8(), 1u);
  EXPECT_EQ(reader.u16(), 0x0302u);
  EXPECT_EQ(reader.u32(), 0x07060504u);
  EXPECT_EQ(reader.u64(), 0x0f0e0d0c0b0a0908u);
  EXPECT_TRUE(reader.ok() && reader.at_end());
  ByteReader swapped(data, true);
  EXPECT_EQ(swapped.u8(), 1u);
  EXPECT_EQ(swapped.u16(), 0x0203u);
  EXPECT_EQ(swapped.u32(), 0x04050607u);
  EXPECT_EQ(swapped.u64(), 0x08090a0b0c0d0e0fu);
}

TEST(ByteReader, FailureStays) {
  auto data = bytes({1, 2, 3});
  ByteReader reader(data);
  EXPECT_EQ(reader.u32(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.u8(), 0u);  // although a byte was left
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, EveryReadIsBounded) {
  auto data = bytes({1, 2, 3, 4});
  auto fails = [&](auto&& read) {
    ByteReader reader(data);
    reader.u8();
    read(reader);
    return !reader.ok();
  };
  EXPECT_TRUE(fails([](ByteReader& r) { r.skip(4); }));
  EXPECT_TRUE(fails([](ByteReader& r) { r.skip(~uint64_t{0}); }));
  EXPECT_TRUE(fails([](ByteReader& r) { r.seek(5); }));
  EXPECT_TRUE(fails([](ByteReader& r) { EXPECT_TRUE(r.bytes(~uint64_t{0} - 1).empty()); }));
  EXPECT_TRUE(fails([](ByteReader& r) { EXPECT_TRUE(r.cstring().empty()); }));
  EXPECT_FALSE(fails([](ByteReader& r) { r.skip(3); }));
  EXPECT_FALSE(fails([](ByteReader& r) { r.seek(4); }));
  EXPECT_FALSE(fails([](ByteReader& r) { EXPECT_EQ(r.bytes(3).size(), 3u); }));
  ByteReader empty({});
  EXPECT_TRUE(empty.cstring().empty());
  EXPECT_FALSE(empty.ok());
}

TEST(ByteReader, Strings) {
  auto data = bytes({'a', 'b', 0, 0, 'c'});
  ByteReader reader(data);
  EXPECT_EQ(reader.cstring(), "ab");
  EXPECT_EQ(reader.cstring(), "");
  EXPECT_TRUE(reader.ok());
  reader.cstring();
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, UnsignedLeb) {
  auto data = bytes({0x02, 0x7f, 0x80, 0x01, 0xe5, 0x8e, 0x26});
  ByteReader reader(data);
  EXPECT_EQ(reader.uleb(), 2u);
  EXPECT_EQ(reader.uleb(), 127u);
  EXPECT_EQ(reader.uleb(), 128u);
  EXPECT_EQ(reader.uleb(), 624485u);
  EXPECT_TRUE(reader.ok() && reader.at_end());
  auto largest = bytes({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01});
  EXPECT_EQ(ByteReader(largest).uleb(), ~uint64_t{0});
}

TEST(ByteReader, SignedLeb) {
  auto data = bytes({0x02, 0x7e, 0xff, 0x00, 0x81, 0x7f, 0x80, 0x7f});
  ByteReader reader(data);
  EXPECT_EQ(reader.sleb(), 2);
  EXPECT_EQ(reader.sleb(), -2);
  EXPECT_EQ(reader.sleb(), 127);
  EXPECT_EQ(reader.sleb(), -127);
  EXPECT_EQ(reader.sleb(), -128);
  EXPECT_TRUE(reader.ok());
  auto smallest = bytes({0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f});
  EXPECT_EQ(ByteReader(smallest).sleb(), INT64_MIN);
}

TEST(ByteReader, EndlessLebFails) {
  std::array<std::byte, 32> data;
  data.fill(std::byte{0x80});
  ByteReader unsigned_reader(data), signed_reader(data);
  unsigned_reader.uleb();
  signed_reader.sleb();
  EXPECT_FALSE(unsigned_reader.ok());
  EXPECT_FALSE(signed_reader.ok());
  ByteReader cut(std::span<const std::byte>(data).first(2));
  cut.uleb();
  EXPECT_FALSE(cut.ok());
}

}  // namespace
}  // namespace cprof
