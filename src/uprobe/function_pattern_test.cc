#include "uprobe/function_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace cprof::uprobe {
namespace {

TEST(FunctionPattern, TheFirstSingleColonEndsTheFile) {
  struct Case {
    const char *text, *file, *name;
  };
  for (const Case& c : {Case{"main", "", "main"}, Case{"a::b::c", "", "a::b::c"}, Case{"libm.so.6:sin*", "libm.so.6", "sin*"},
                        Case{"/opt/app/lib.so:ns::f(int)", "/opt/app/lib.so", "ns::f(int)"}, Case{"x:a::b", "x", "a::b"},
                        Case{"std::vector<a::b>::f", "", "std::vector<a::b>::f"}, Case{"lib:::f", "", "lib:::f"}}) {
    const auto pattern = FunctionPattern::parse(c.text);
    ASSERT_TRUE(pattern) << c.text;
    EXPECT_EQ(pattern->file, c.file);
    EXPECT_EQ(pattern->name, c.name);
  }
  EXPECT_FALSE(FunctionPattern::parse(""));
  EXPECT_FALSE(FunctionPattern::parse(":f"));
  EXPECT_FALSE(FunctionPattern::parse("lib.so:"));
}

TEST(FunctionPattern, FilesByPathNameOrStem) {
  const auto names = [](const char* pattern, const char* path) { return FunctionPattern::parse(std::string(pattern) + ":f")->names_file(path); };
  EXPECT_TRUE(names("libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_TRUE(names("libc", "/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_TRUE(names("/lib/*/libc.so.6", "/lib/x86_64-linux-gnu/libc.so.6"));
  EXPECT_TRUE(names("lib*", "/lib/x86_64-linux-gnu/libm.so.6"));
  EXPECT_FALSE(names("libc", "/lib/libcrypt.so.1"));
  EXPECT_FALSE(names("c", "/lib/libc.so.6"));
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("a*b*c", "a--b-b-c"));
  EXPECT_TRUE(matches_glob("a?c", "abc"));
  EXPECT_TRUE(matches_glob("**x", "yyx"));
  EXPECT_TRUE(matches_glob("operator[]*", "operator[](int)"));
  EXPECT_FALSE(matches_glob("a*b", "a-b-"));
  EXPECT_FALSE(matches_glob("a?c", "ac"));
  EXPECT_FALSE(matches_glob("", "a"));
}

TEST(Glob, ManyStarsOverALongNameTakeNoTime) {
  std::string glob, text(20'000, 'a');
  for (int i = 0; i < 2'000; i++) glob += "a*";
  EXPECT_FALSE(matches_glob(glob + "b", text));
}

}  // namespace
}  // namespace cprof::uprobe
