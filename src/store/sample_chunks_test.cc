#include "store/sample_chunks.h"

#include <gtest/gtest.h>

#include <limits>

namespace cprof::store {
namespace {

using Values = std::vector<std::optional<int64_t>>;

TEST(SampleChunks, AColumnOfOneValueIsThatValue) {
  EXPECT_EQ(pack(Values{5, 5, 5}).value, 5);
  EXPECT_FALSE(pack(Values{std::nullopt, std::nullopt}).value);
  EXPECT_EQ(pack(Values{5, std::nullopt, -6}).array, "[5,null,-6]");
}

TEST(SampleChunks, ArraysComeBack) {
  const Values values = {0, std::numeric_limits<int64_t>::min(), std::nullopt, std::numeric_limits<int64_t>::max()};
  EXPECT_EQ(unpack(pack(values).array, 4), values);
  for (const char* text : {"", "[", "[]", "[1", "1]", "[1,]", "[,1]", "[1 ,2]", "[1.5]", "[9223372036854775808]", "[nul]", "[1]x",
                           "[[1]]", "[\"1\"]", "[null1]"})
    EXPECT_FALSE(unpack(text, 10)) << text;
  EXPECT_FALSE(unpack("[1,2,3]", 2));
}

// Even sampling takes few bytes: that is what the step is for.
TEST(SampleChunks, EvenSamplesAreSmall) {
  std::vector<profile::Sample> samples;
  for (uint64_t i = 0; i < 256; ++i)
    samples.push_back({.time_ns = 1'000'000'000'000 + i * 1'001'001 + i * i % 97, .thread = profile::ThreadId(uint32_t{3}),
                       .site = profile::CallSiteId(uint32_t{700}), .metric = profile::MetricId(uint32_t{0})});
  SampleContexts contexts;
  const SampleChunk chunk = pack_samples(samples, contexts);
  EXPECT_EQ(chunk.callsite.value, 700);
  EXPECT_EQ(chunk.context.value, 0);
  EXPECT_EQ(contexts.rows().size(), 1u);
  EXPECT_LT(chunk.jitter.size(), 256 * 5u);
}

}  // namespace
}  // namespace cprof::store
