#include "base/text_hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace cprof {
namespace {

TEST(TextHash, EveryByteAndTheLengthCount) {
  TextHasher hasher;
  std::set<std::pair<uint64_t, uint64_t>> seen;
  size_t texts = 0;
  auto add = [&](std::string_view text) {
    TextHash hash = hasher(text);
    seen.insert({hash.a, hash.b});
    texts++;
  };
  for (size_t length = 0; length <= 40; length++) {
    const std::string zeros(length, '\0');
    add(zeros);
    for (size_t at = 0; at < length; at++) {
      std::string changed = zeros;
      changed[at] = 'x';
      add(changed);
    }
  }
  EXPECT_EQ(seen.size(), texts);
}

TEST(TextHash, TheSameForTheSameText) {
  EXPECT_EQ(TextHasher()("a stack"), TextHasher()(std::string("a ") + "stack"));
}

TEST(TextHash, JoinedInOrder) {
  TextHasher hasher;
  EXPECT_NE(hasher.join(hasher("a"), hasher("b")), hasher.join(hasher("b"), hasher("a")));
  EXPECT_NE(hasher.join(hasher("a"), hasher("b")), hasher("ab"));
}

}  // namespace
}  // namespace cprof
