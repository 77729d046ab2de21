#include "analyze/pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <string>

namespace cprof::analyze {
namespace {

TEST(Pattern, MatchesWholeNames) {
  struct Case {
    std::string_view pattern, text;
    bool matches;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"runtime\\..*", "runtime.call32", true}, {"runtime\\..*", "xruntime.call32", false},
           {"a|bc|d+", "ddd", true},                 {"a|bc|d+", "bcd", false},
           {"(?i)new", "NEW", true},                 {"[a-c_]{2,3}x?", "ab_", true},
           {"[a-c_]{2,3}x?", "a", false},            {"operator new\\[\\]", "operator new[]", true},
           {"[^:]+::(Add|Sub)", "A::Sub", true},     {"^(a|b)*$", "abab", true},
           {"\\w+\\s\\d", "ab 1", true},             {"", "", true},
           {"(a*)+b", std::string_view("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"), false}}) {
    auto pattern = Pattern::compile(c.pattern);
    ASSERT_TRUE(pattern) << c.pattern << ": " << pattern.error().message;
    EXPECT_EQ(pattern->matches_all_of(c.text), c.matches) << c.pattern << " " << c.text;
  }
  for (std::string_view bad : {"(", "a)", "[a", "\\", "a{2000}", "((a{1000}){1000}){9}", "(((){999}){999}){999}", "a**", "\\1", "(?z)"})
    EXPECT_FALSE(Pattern::compile(bad)) << bad;
}

TEST(Pattern, FindsParts) {
  const auto pattern = Pattern::compile("pars(e|ing)$");
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->found_in("xml::parse"));
  EXPECT_FALSE(pattern->found_in("xml::parser"));
  EXPECT_FALSE(pattern->matches_all_of("xml::parse"));
}

TEST(Pattern, ABadExpressionIsOneLine) {
  const auto bad = Pattern::compile("f(");
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with("not a regular expression: missing )")) << bad.error().message;
  EXPECT_EQ(bad.error().message.find('\n'), std::string::npos);
}

TEST(Pattern, NoExpressionIsSlow) {
  const auto pattern = Pattern::compile("((a*)*)*b");
  ASSERT_TRUE(pattern);
  const std::string text(1 << 20, 'a');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(pattern->found_in(text));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "a backtracking engine needs years";
}

}  // namespace
}  // namespace cprof::analyze
