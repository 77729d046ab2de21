#include "serve/sample.h"

#include <gtest/gtest.h>

#include "profile/validate.h"
#include "timeline/timeline.h"

namespace cprof::serve {
namespace {

TEST(Sample, IsAWholeProfileWithEverythingThatThePageShows) {
  const profile::Profile p = sample_profile();
  const auto valid = profile::validate(p);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  EXPECT_EQ(p.threads.size(), 6u);
  EXPECT_GT(p.samples.size(), 5'000u);
  EXPECT_GT(p.off_cpu.size(), 1'000u);
  bool has_kernel = false;
  for (const auto& location : p.locations) has_kernel |= location.kind == profile::FrameKind::kKernel;
  EXPECT_TRUE(has_kernel);
  for (size_t i = 1; i < p.on_cpu.size(); ++i) {
    const bool is_other = p.on_cpu[i].thread != p.on_cpu[i - 1].thread;
    EXPECT_TRUE(is_other || p.on_cpu[i].start_ns >= p.on_cpu[i - 1].end_ns) << i;
  }
}

TEST(Sample, IsTheSameEveryTime) {
  const profile::Profile a = sample_profile(), b = sample_profile();
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (size_t i = 0; i < a.samples.size(); ++i) ASSERT_EQ(a.samples[i].site, b.samples[i].site);
}

}  // namespace
}  // namespace cprof::serve
