#include "cli/text_layout.h"

#include <gtest/gtest.h>

namespace cprof::cli {
namespace {

TEST(TextLayout, NoControlCharacterGetsThrough) {
  EXPECT_EQ(printable("f(int)\x1b[31m\n\t\x7f"), "f(int)?[31m???");
  EXPECT_EQ(printable("naïve→λ"), "naïve→λ");
  EXPECT_EQ(printable("a\xff\xc3"), "a??") << "broken UTF-8";
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "??31m")
      << "C1 control";
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a???b")
      << "right-to-left override";
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80"), "?????") << "overlong, surrogate";
}

TEST(TextLayout, LongNamesLoseTheirMiddle) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghijk", 5), "ab…jk");
  EXPECT_EQ(shortened("ääääääääää", 6), "äää…ää");
  EXPECT_EQ(columns_of(shortened(std::string(1000, 'x'), 33)), 33u);
  EXPECT_EQ(shortened("abcdef", 2), "..");
}

TEST(TextLayout, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(columns_of("e\xcc\x81"), 1u) << "a combining accent";
  EXPECT_EQ(padded("日", 4), "日  ");
  EXPECT_EQ(shortened("日本語日本語", 7), "日…語");
  EXPECT_LE(columns_of(shortened("日本語日本語", 8)), 8u);
}

TEST(TextLayout, Numbers) {
  EXPECT_EQ(percent(0.4123), "41.2 %");
  EXPECT_EQ(percent(-0.0001), "0.0 %");
  EXPECT_EQ(duration_text(12.41e9), "12.4 s");
  EXPECT_EQ(duration_text(25e3), "25.0 µs");
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1.5e6), "1.50 ms");
  EXPECT_EQ(bytes_text(201e6), "201 MB");
}

TEST(TextLayout, OneScaleForAView) {
  const ValueScale seconds(12'410'000'000, "nanoseconds");
  EXPECT_EQ(seconds.text(12'410'000'000), "12.41 s");
  EXPECT_EQ(seconds.text(20'000'000), "0.02 s");
  EXPECT_EQ(ValueScale(5, "count").text(12281), "12,281");
  EXPECT_EQ(ValueScale(2'000'000, "bytes").text(1'500'000), "1.50 MB");
  EXPECT_EQ(ValueScale(0, "nanoseconds").text(0), "0 ns");
}

TEST(TextLayout, ParagraphsKeepTheirIndent) {
  EXPECT_EQ(paragraph("note: ", "one two three four", 16), "note: one two\n      three four\n");
  EXPECT_EQ(paragraph("n: ", "averyveryverylongword x", 10), "n: averyveryverylongword\n   x\n");
  EXPECT_EQ(paragraph("n: ", "", 10), "n: \n");
}

TEST(TextLayout, Padding) {
  EXPECT_EQ(padded("λ", 3), "λ  ");
  EXPECT_EQ(right_aligned("λ", 3), "  λ");
  EXPECT_EQ(padded("long", 2), "long");
}

}  // namespace
}  // namespace cprof::cli
