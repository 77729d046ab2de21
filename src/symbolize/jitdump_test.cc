#include "symbolize/jitdump.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace cprof::symbolize {
namespace {

// Builds a dump as the specification has it.
class Dump {
 public:
  Dump() {
    u32(0x4a695444), u32(1), u32(40), u32(62), u32(0), u32(77), u64(1), u64(0);
  }
  void load(uint64_t address, uint64_t size, uint64_t index, std::string_view name) {
    begin(0);
    u32(77), u32(77), u64(address), u64(address), u64(size), u64(index);
    bytes += name;
    bytes += '\0';
    bytes.append(size, '\x90');
    end();
  }
  void move(uint64_t from, uint64_t to, uint64_t size, uint64_t index) {
    begin(1);
    u32(77), u32(77), u64(to), u64(from), u64(to), u64(size), u64(index);
    end();
  }
  void lines(uint64_t address, std::initializer_list<std::tuple<uint64_t, uint32_t, std::string_view>> rows) {
    begin(2);
    u64(address), u64(rows.size());
    for (const auto& [at, line, file] : rows) {
      u64(at), u32(line), u32(0);
      bytes += file;
      bytes += '\0';
    }
    end();
  }
  void u32(uint32_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void u64(uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void begin(uint32_t id) {
    start_ = bytes.size();
    u32(id), u32(0), u64(time);
  }
  void end() {
    const auto total = static_cast<uint32_t>(bytes.size() - start_);
    memcpy(bytes.data() + start_ + 4, &total, sizeof total);
  }
  JitDump::Read reader() const {
    return [this](uint64_t offset, std::span<std::byte> into) -> size_t {
      if (offset >= bytes.size()) return 0;
      const size_t count = std::min(into.size(), bytes.size() - offset);
      memcpy(into.data(), bytes.data() + offset, count);
      return count;
    };
  }

  std::string bytes;
  uint64_t time = 5;  // of the next records

 private:
  size_t start_ = 0;
};

TEST(JitDump, NamesCodeAndItsLines) {
  Dump dump;
  dump.lines(0x1000, {{0x1000, 3, "a.js"}, {0x1008, 4, "\xff"}, {0x1010, 9, "b.js"}});
  dump.load(0x1000, 0x20, 1, "f");
  dump.load(0x2000, 0x10, 2, "g");
  JitDump names(dump.reader());
  ASSERT_TRUE(names.read_until(dump.bytes.size()).has_value());
  ASSERT_TRUE(names.find(0x100c).has_value());
  EXPECT_EQ(names.find(0x100c)->name, "f");
  EXPECT_EQ(names.find(0x100c)->file, "a.js");
  EXPECT_EQ(names.find(0x100c)->line, 4u);
  EXPECT_EQ(names.find(0x101f)->file, "b.js");
  EXPECT_EQ(names.find(0x2001)->name, "g");
  EXPECT_EQ(names.find(0x2001)->line, 0u);
  EXPECT_FALSE(names.find(0x1020).has_value());
}

TEST(JitDump, MovedCodeKeepsItsNameAndLines) {
  Dump dump;
  dump.lines(0x1000, {{0x1008, 4, "a.js"}});
  dump.load(0x1000, 0x20, 1, "f");
  dump.move(0x1000, 0x9000, 0x20, 1);
  dump.load(0x1000, 0x20, 2, "new");
  JitDump names(dump.reader());
  ASSERT_TRUE(names.read_until(dump.bytes.size()).has_value());
  EXPECT_EQ(names.find(0x9009)->name, "f");
  EXPECT_EQ(names.find(0x9009)->line, 4u);
  EXPECT_EQ(names.find(0x1009)->name, "new");
}

// JIT-09.
TEST(JitDump, WhatLiesAtAPlaceDependsOnTheTime) {
  Dump dump;
  dump.time = 100;
  dump.load(0x1000, 0x20, 1, "f");
  dump.load(0x5000, 0x20, 2, "still");
  dump.time = 200;
  dump.move(0x1000, 0x9000, 0x20, 1);
  dump.time = 300;
  dump.load(0x1010, 0x10, 3, "g");
  JitDump names(dump.reader());
  ASSERT_TRUE(names.read_until(dump.bytes.size()).has_value());
  auto name = [&](uint64_t address, uint64_t time) { return names.find(address, time) ? names.find(address, time)->name : "none"; };
  for (uint64_t time : {50, 100, 199}) EXPECT_EQ(name(0x1000, time), "f") << time;
  for (uint64_t time : {200, 1000}) EXPECT_EQ(name(0x1000, time), "none") << time;
  EXPECT_EQ(name(0x1000, JitDump::kLast), "none");
  EXPECT_EQ(name(0x1010, 199), "f");
  EXPECT_EQ(name(0x1010, 299), "none");
  EXPECT_EQ(name(0x1010, 300), "g");
  EXPECT_EQ(name(0x9000, 199), "f") << "it may run before it is told of";
  EXPECT_EQ(name(0x9000, 200), "f");
  EXPECT_TRUE(names.changes(0x1000));
  EXPECT_TRUE(names.changes(0x1010));
  EXPECT_FALSE(names.changes(0x9000));
  EXPECT_FALSE(names.changes(0x5000));
  EXPECT_FALSE(names.changes(0x7000));
}

TEST(JitDump, TimesOfTheProcessorsClockAreNoTimes) {
  Dump dump;
  dump.bytes[32] = 1;
  dump.load(0x1000, 0x20, 1, "f");
  dump.time = 200;
  dump.move(0x1000, 0x9000, 0x20, 1);
  JitDump names(dump.reader());
  ASSERT_TRUE(names.read_until(dump.bytes.size()).has_value());
  EXPECT_FALSE(names.changes(0x1000));
  EXPECT_EQ(names.find(0x1000, 1000)->name, "f");
}

TEST(JitDump, GoesOnWhereItStopped) {
  Dump dump;
  JitDump names(dump.reader());
  ASSERT_TRUE(names.read_until(10).has_value());
  dump.load(0x1000, 0x20, 1, "f");
  const size_t first = dump.bytes.size();
  dump.load(0x2000, 0x20, 2, "g");
  ASSERT_TRUE(names.read_until(first + 20).has_value());
  EXPECT_TRUE(names.find(0x1000).has_value());
  EXPECT_FALSE(names.find(0x2000).has_value());
  ASSERT_TRUE(names.read_until(dump.bytes.size()).has_value());
  EXPECT_EQ(names.find(0x2000)->name, "g");
}

TEST(JitDump, WhatIsBrokenIsAnErrorAndKeepsWhatCameBefore) {
  Dump dump;
  dump.load(0x1000, 0x20, 1, "f");
  dump.begin(0);  // no size
  JitDump names(dump.reader());
  EXPECT_FALSE(names.read_until(dump.bytes.size()).has_value());
  EXPECT_EQ(names.find(0x1000)->name, "f");
  dump.bytes[0] = 'x';
  EXPECT_FALSE(JitDump(dump.reader()).read_until(dump.bytes.size()).has_value());
}

TEST(JitDump, EveryPrefixIsTaken) {
  Dump dump;
  dump.lines(0x1000, {{0x1000, 3, "a.js"}, {0x1008, 4, "\xff"}});
  dump.load(0x1000, 0x20, 1, "f");
  dump.move(0x1000, 0x9000, 0x20, 1);
  for (size_t size = 0; size <= dump.bytes.size(); size++) {
    JitDump names(dump.reader());
    EXPECT_TRUE(names.read_until(size).has_value()) << size;
  }
}

}  // namespace
}  // namespace cprof::symbolize
