#include "pipeline/code_by_time.h"

#include <gtest/gtest.h>

#include "profile/validate.h"

namespace cprof::pipeline {
namespace {

using namespace profile;

TEST(CodeByTime, StacksGetTheCodeOfTheirTime) {
  ProfileBuilder b;
  const MappingId mapping = b.mapping({.path = b.intern("//anon"), .start = 0x1000, .end = 0x2000});
  auto at = [&](uint64_t address) { return b.location({.mapping = mapping, .address = address, .file_address = address}); };
  const LocationId main = at(0x1000), code = at(0x1100), leaf = at(0x1200);
  const LocationId earlier = b.add_location(b.profile().locations[code.index()], {});
  const ThreadId thread = b.add_thread(b.add_process(1, "app"), 1, "app");
  const MetricId metric = b.add_metric("cpu-clock", "nanoseconds");
  const CallSiteId whole = b.stack(std::vector{main, code, leaf}), other = b.stack(std::vector{main, leaf});
  for (uint64_t time : {10, 20, 30})
    for (CallSiteId site : {whole, other, CallSiteId()}) b.add_sample({.time_ns = time, .thread = thread, .site = site, .metric = metric});
  b.profile().off_cpu = {{.thread = thread, .start_ns = 12, .end_ns = 40, .site = whole}};
  place_by_time(b, std::vector{code}, [&](LocationId id, uint64_t time) { return time < 20 ? earlier : id; });
  const Profile p = b.take();
  ASSERT_TRUE(validate(p));
  auto middle = [&](CallSiteId site) { return p.sites[p.sites[site.index()].parent.index()].location; };
  EXPECT_EQ(middle(p.samples[0].site), earlier);
  EXPECT_EQ(p.sites[p.samples[0].site.index()].location, leaf);
  EXPECT_EQ(p.samples[1].site, other);
  EXPECT_FALSE(p.samples[2].site.valid());
  EXPECT_EQ(p.samples[3].site, whole);
  EXPECT_EQ(p.samples[6].site, whole);
  EXPECT_EQ(p.off_cpu[0].site, p.samples[0].site) << "by when it left the CPU";
}

}  // namespace
}  // namespace cprof::pipeline
