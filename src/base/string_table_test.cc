#include "base/string_table.h"

#include <gtest/gtest.h>

namespace cprof {
namespace {

TEST(StringTable, InternsEachTextOnce) {
  StringTable table;
  StringId a = table.intern("main");
  EXPECT_EQ(table.intern(std::string("ma") + "in"), a);
  EXPECT_NE(table.intern("mainx"), a);
  EXPECT_EQ(table[a], "main");
  EXPECT_EQ(table[StringId(0u)], "");
}

TEST(StringTable, ViewsStayValidWhileItGrows) {
  StringTable table;
  std::string_view first = table[table.intern("first")];
  std::string big(100000, 'x');
  for (int i = 0; i < 50; i++) table.intern(big + std::to_string(i));
  EXPECT_EQ(first, "first");
  EXPECT_EQ(table[table.intern(big + "7")].size(), big.size() + 1);
}

}  // namespace
}  // namespace cprof
