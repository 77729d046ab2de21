#include "format/cpuprofile/cpuprofile.h"

#include <random>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

constexpr std::string_view kNodes = R"json([
  {"id":1,"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"hitCount":0,"children":[2,4]},
  {"id":2,"callFrame":{"functionName":"main","scriptId":"1","url":"file:///a.js","lineNumber":9,"columnNumber":4},"hitCount":1,"children":[3]},
  {"id":3,"callFrame":{"functionName":"","scriptId":"1","url":"file:///a.js","lineNumber":0,"columnNumber":0},"hitCount":2},
  {"id":4,"callFrame":{"functionName":"(idle)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"hitCount":1}])json";

std::string file(std::string_view rest) { return "{" + std::string(rest) + ",\"nodes\":" + std::string(kNodes) + "}"; }

TEST(CpuProfile, SamplesWithTheirTimes) {
  auto profile = read_bytes(cpuprofile_format(),
                            file(R"("startTime":1000,"endTime":1400,"samples":[3,2,4],"timeDeltas":[100,50,150])"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile),
            "(idle)@0:; duration/nanoseconds=100000 tid=1\nmain@10:file:///a.js; duration/nanoseconds=150000 tid=1\n"
            "main@10:file:///a.js;(anonymous)@1:file:///a.js; duration/nanoseconds=50000 tid=1\n");
  EXPECT_EQ(profile->samples[0].time_ns, 1'100'000u);
  EXPECT_EQ(profile->samples.back().time_ns, 1'300'000u);
}

TEST(CpuProfile, UnsortedSamplesAreSorted) {
  auto profile = read_bytes(cpuprofile_format(), file(R"("startTime":0,"endTime":9,"samples":[2,3,4],"timeDeltas":[5,-2,1])"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->samples[0].time_ns, 3'000u);
  EXPECT_EQ(profile->samples[2].time_ns, 5'000u);
  EXPECT_EQ(profile->diagnostics.count("cpuprofile_unsorted"), 1u);
}

TEST(CpuProfile, HitsAloneAreUntimed) {
  EXPECT_EQ(read_dump(cpuprofile_format(), file(R"("startTime":0)")),
            "(idle)@0:; samples/count=1\nmain@10:file:///a.js; samples/count=1\n"
            "main@10:file:///a.js;(anonymous)@1:file:///a.js; samples/count=2\n");
}

TEST(CpuProfile, ParentsInsteadOfChildren) {
  EXPECT_EQ(read_dump(cpuprofile_format(), R"json({"nodes":[{"id":2,"parent":1,"callFrame":{"functionName":"f"},"hitCount":3},
                                   {"id":1,"callFrame":{"functionName":"(root)"}}],"startTime":0})json"),
            "f@0:; samples/count=3\n");
}

TEST(CpuProfile, ErrorsSayWhat) {
  EXPECT_EQ(read_dump(cpuprofile_format(), file(R"("samples":[9],"timeDeltas":[1])")), "test-input: a sample names node 9, which is not there");
  EXPECT_EQ(read_dump(cpuprofile_format(), file(R"("samples":[2],"timeDeltas":[])")), "test-input: 1 samples and 0 times of them");
  EXPECT_EQ(read_dump(cpuprofile_format(), file(R"("samples":[2],"timeDeltas":[-1])")), "test-input: times that 64 bits do not hold");
  EXPECT_EQ(read_dump(cpuprofile_format(), R"({"nodes":[{"id":1,"callFrame":{"functionName":"f"},"children":[1],"hitCount":1}]})"),
            "test-input: node 1 is its own ancestor");
  EXPECT_EQ(read_dump(cpuprofile_format(), R"({"nodes":[{"id":1,"callFrame":{"functionName":"f"},"children":[7]}]})"),
            "test-input: node 1 has a child 7, which is not there");
  EXPECT_EQ(read_dump(cpuprofile_format(), R"({"nodes":[{"id":1},{"id":1}]})"), "test-input: two nodes have the id 1");
  EXPECT_EQ(read_dump(cpuprofile_format(), R"({"head":{"hitCount":1}})"), "test-input: not supported: the nested nodes of Chrome before 58");
  EXPECT_EQ(read_dump(cpuprofile_format(), "{}"), "test-input: no nodes");
  EXPECT_TRUE(read_dump(cpuprofile_format(), file(R"("samples":[2],"timeDeltas":[1])").substr(0, 100)).starts_with("test-input: the JSON ends early"));
}

TEST(CpuProfile, Sniff) {
  EXPECT_TRUE(sniff_cpuprofile(as_span(R"({"nodes":[{"id":1,"callFrame":{"functionName")")));
  EXPECT_TRUE(sniff_cpuprofile(as_span(R"({"startTime":1,"timeDeltas":[1,2)")));
  EXPECT_FALSE(sniff_cpuprofile(as_span(R"({"snapshot":{},"nodes":[1,2],"samples":[]})")));
  EXPECT_FALSE(sniff_cpuprofile(as_span(R"({"traceEvents":[{"nodes":[{"id":1}]}]})")));
}

TEST(CpuProfile, MutatedFilesNeverBreakIt) {
  const std::string good = file(R"("startTime":1000,"endTime":1400,"samples":[3,2,4],"timeDeltas":[100,50,150])");
  std::mt19937 random(7);
  for (int i = 0; i < 1'500; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(32 + random() % 96);
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(cpuprofile_format(), bytes);
    EXPECT_TRUE(profile || !profile.error().message.empty());
  }
}

}  // namespace
}  // namespace cprof::format
