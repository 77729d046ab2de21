#include "base/utf8.h"

#include <gtest/gtest.h>

namespace cprof {
namespace {

TEST(Utf8, EveryCodePointComesBack) {
  for (uint32_t value = 0; value <= 0x10ffff; ++value) {
    if (is_high_surrogate(value) || is_low_surrogate(value)) continue;
    std::string text;
    append_utf8(text, value);
    const size_t size = text.size();
    text += 'x';
    const CodePoint found = first_code_point(text);
    ASSERT_EQ(found.value, value);
    ASSERT_EQ(found.bytes, size);
    ASSERT_EQ(first_code_point(text.substr(0, size - 1) + "x").bytes, size == 1 ? 1u : 0u) << value;
  }
}

TEST(Utf8, WhatIsNone) {
  for (std::string_view text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf",
                                "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2x\xac", "\xf0\x9f\x98"})
    EXPECT_EQ(first_code_point(text).bytes, 0u) << text;
  EXPECT_EQ(first_code_point(kReplacementText).value, kReplacementCharacter);
}

TEST(Utf8, SurrogatesJoin) {
  EXPECT_EQ(join_surrogates(0xd83d, 0xde00), 0x1f600u);
  EXPECT_EQ(join_surrogates(0xdbff, 0xdfff), 0x10ffffu);
}

}  // namespace
}  // namespace cprof
