#include "format/gperftools/gperftools.h"

#include <random>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

// Words as a program of that kind writes them.
std::string words(unsigned size, bool is_big, std::initializer_list<uint64_t> values) {
  std::string bytes;
  for (uint64_t value : values)
    for (unsigned i = 0; i < size; ++i)
      bytes += static_cast<char>(value >> 8 * (is_big ? size - 1 - i : i));
  return bytes;
}

constexpr std::string_view kMap =
    "build=/opt/app\n"
    "00400000-00500000 r-xp 00000000 08:01 77    $build/bin\n"
    "00500000-00600000 rw-p 00100000 08:01 77    $build/bin\n"
    "7f0000000000-7f0000100000 r-xp 00001000 08:01 78    /lib/libx.so\n";

// Leaf, the handler's frame, callers: one sample thrice, another once; a leaf that stands twice.
std::string cpu_file(unsigned size, bool is_big) {
  return words(size, is_big, {0, 3, 0, 10000, 0, 3, 4, 0x400100, 0x4ff000, 0x400200, 0x400300,
                              1, 3, 0x400104, 0x4ff000, 0x400300, 1, 4, 0x400108, 0x4ff000, 0x400108, 0x400300,
                              0, 1, 0}) + std::string(kMap);
}

// "values: address+r ..." leaf first, r for a return address.
std::string stacks(const Profile& profile) {
  std::vector<std::string> lines;
  for (const auto& row : profile.aggregates) {
    std::string line(profile.text(profile.metrics[row.metric.index()].name));
    line += "=" + std::to_string(row.value) + ":";
    for (auto site = row.site; site.valid(); site = profile.sites[site.index()].parent) {
      const auto& l = profile.locations[profile.sites[site.index()].location.index()];
      char text[32];
      snprintf(text, sizeof text, " %llx%s", static_cast<unsigned long long>(l.address), l.is_return_address ? "r" : "");
      line += text;
    }
    lines.push_back(line);
  }
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

std::string read_stacks(std::string_view text) {
  auto profile = read_bytes(gperftools_format(), text);
  return profile ? stacks(*profile) : profile.error().message;
}

TEST(Gperftools, CpuProfileOfEveryWordShape) {
  for (unsigned size : {4u, 8u})
    for (bool is_big : {false, true}) {
      const std::string file = cpu_file(size, is_big);
      EXPECT_TRUE(sniff_gperftools(as_span(file)));
      auto profile = read_bytes(gperftools_format(), file);
      ASSERT_TRUE(profile) << profile.error().message;
      EXPECT_EQ(stacks(*profile),
                "samples=3: 400100 400200r 400300r\ncpu=30000000: 400100 400200r 400300r\n"
                "samples=1: 400104 400300r\ncpu=10000000: 400104 400300r\n"
                "samples=1: 400108 400300r\ncpu=10000000: 400108 400300r\n");
      EXPECT_EQ(profile->run.sampling_interval_ns, 10'000'000u);
      ASSERT_EQ(profile->mappings.size(), 2u);
      EXPECT_EQ(profile->text(profile->mappings[0].path), "/opt/app/bin");
      EXPECT_EQ(profile->mappings[1].load_bias, 0x7f0000000000u - 0x1000u);
      EXPECT_EQ(profile->locations[0].mapping.value, 0u);
    }
}

TEST(Gperftools, CpuProfileOfJavaHasNames) {
  const std::string file = words(8, false, {0, 3, 1, 1000, 0, 2, 2, 0x7, 0x8, 0, 1, 0}) +
                           "\n 0x00000007 a.b.leaf (Leaf.java:7)\n 0x00000008 a.b.main (Main.java:-1)\n";
  auto profile = read_bytes(gperftools_format(), file);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile),
            "a.b.main@0:Main.java;a.b.leaf@7:Leaf.java; cpu/nanoseconds=2000000\n"
            "a.b.main@0:Main.java;a.b.leaf@7:Leaf.java; samples/count=2\n");
}

TEST(Gperftools, CpuProfileThatEndsEarly) {
  const std::string file = cpu_file(8, false);
  EXPECT_EQ(read_stacks(file.substr(0, 100)), "test-input: the samples end early, at byte 96");
  EXPECT_EQ(read_stacks(words(8, false, {0, 3, 0, 100, 0, 1, uint64_t{1} << 40, 5})),
            "test-input: byte 40: a stack of 1099511627776 frames");
  EXPECT_EQ(read_stacks(words(8, false, {0, 3, 0, 100, 0, 0, 1, 0})), "test-input: no samples");
}

// Equal columns are kept: two files of one program merge whether or not all its memory is in use.
TEST(Gperftools, HeapProfilesAlwaysHaveFourValues) {
  for (std::string_view text : {"heap profile:  2:  64 [ 2: 64] @ heapprofile\n 2: 64 [ 2: 64] @ 0x10 0x20\n",
                                "heap profile:  2:  64 [ 9: 640] @ heapprofile\n 2: 64 [ 9: 640] @ 0x10 0x20\n"}) {
    auto profile = read_bytes(gperftools_format(), text);
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_EQ(profile->metrics.size(), 4u);
    EXPECT_EQ(total(*profile, "inuse_space"), 64);
    EXPECT_EQ(profile->run.default_metric, profile->metrics[3].name);
  }
  EXPECT_EQ(read_stacks("heap profile: 2: 64 [ 9: 640] @ heapprofile\n2: 64 [ 9: 640] @ 0x10 0x20\n"),
            "alloc_objects=9: 10r 20r\nalloc_space=640: 10r 20r\ninuse_objects=2: 10r 20r\ninuse_space=64: 10r 20r\n");
}

// 1 object of 1024 bytes at one sample each 1024 bytes: seen with probability 1 - 1/e.
TEST(Gperftools, SampledHeapIsScaled) {
  const std::string sample = "\n10: 10240 [0: 0] @ 0x10\n";
  for (std::string_view header : {"heap_v2/1024", "heapz_v2/1024", "heap/2048"})
    EXPECT_EQ(read_stacks("heap profile: 10: 10240 [0: 0] @ " + std::string(header) + sample),
              "alloc_objects=0: 10r\nalloc_space=0: 10r\ninuse_objects=15: 10r\ninuse_space=16199: 10r\n");
  EXPECT_EQ(read_stacks("heap_v2/1024\n  t*: 10: 10240 [0: 0]\n  t0: 10: 10240 [0: 0]\n@ 0x10 0x20\n"
                        "  t*: 10: 10240 [0: 0]\n  t0: 10: 10240 [0: 0]\n\nMAPPED_LIBRARIES:\n"),
            "alloc_objects=0: 10r 20r\nalloc_space=0: 10r 20r\ninuse_objects=15: 10r 20r\ninuse_space=16199: 10r 20r\n");
}

TEST(Gperftools, GrowthAndItsMap) {
  auto profile = read_bytes(gperftools_format(),
                            "heap profile: 1: 4096 [ 1: 4096] @ growthz\n1: 4096 [ 1: 4096] @ 0x400010 0x7f0000000010\n"
                            "--- other: ---\nrubbish\n--- Memory map: ---\n  00400000-00500000: /bin/app\n"
                            "  7f0000000000-7f0000100000: /lib/libx.so (@abc) 1000\n  what is this\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(stacks(*profile), "objects=1: 400010r 7f0000000010r\nspace=4096: 400010r 7f0000000010r\n");
  EXPECT_EQ(profile->mappings.size(), 2u);
  EXPECT_EQ(profile->diagnostics.count("gperftools_unknown_lines"), 1u);
}

TEST(Gperftools, ContentionIsScaledToTime) {
  EXPECT_EQ(read_stacks("--- contention:\ncycles/second = 2000000000\nsampling period = 10\nms since reset = 5\n"
                        "discarded samples = 0\n 300 2 @ 0x10 0x20\n--- Memory map: ---\n"),
            "contentions=20: 10r 20r\ndelay=1500: 10r 20r\n");
  EXPECT_EQ(read_stacks("--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 10\n"
                        " 3 2 @ 0x1\n\n 0x1 f (F.java:3)\n"),
            "contentions=20: 1\ndelay=30: 1\n");
}

TEST(Gperftools, Threads) {
  auto profile = read_bytes(gperftools_format(),
                            "--- threadz 1 ---\n\n--- Thread 7f00 (name: main/7) stack: ---\n  PC:  0x10: wait(int)\n"
                            "  0x20: main\n--- Thread 7f01 (name: t/8) stack: ---\n  [same as previous thread]\n"
                            "--- Thread 7f02 (name: u/9) stack: ---\n  PC: 0x11 0x21\n      0x31\n"
                            "      creator: 0x41\n--- Memory map: ---\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(stacks(*profile), "thread=2: 10 20r\nthread=1: 11 21r 31r 41r\n");
  EXPECT_NE(dump(*profile).find("main@0:;wait(int)@0:; thread/count=2"), std::string::npos);
}

TEST(Gperftools, GoCountsWithNames) {
  auto profile = read_bytes(gperftools_format(),
                            "goroutine profile: total 3\n2 @ 0x101 0x201\n# labels: {\"a\":\"b\"}\n"
                            "#\t0x100\tmain.inner+0x1\t/src/main.go:12\n#\t0x100\tmain.outer+0x1\t/src/main.go:20\n"
                            "#\t0x200\tmain.main+0x9\t/src/main.go:30\n\n1 @ 0x101\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile),
            "main.main@30:/src/main.go;main.outer@20:/src/main.go;main.inner@12:/src/main.go; goroutine/count=2\n"
            "main.outer@20:/src/main.go;main.inner@12:/src/main.go; goroutine/count=1\n");
  EXPECT_EQ(profile->diagnostics.count("gperftools_labels"), 1u);
}

TEST(Gperftools, NamesInFront) {
  const std::string names = "--- symbol\nbinary=/bin/app\n0x0000000000400100 leaf--outer\n0x400300 main\n---\n";
  auto cpu = read_bytes(gperftools_format(), names + "--- profile\n" + cpu_file(8, false));
  ASSERT_TRUE(cpu) << cpu.error().message;
  EXPECT_NE(dump(*cpu).find("main@0:;[bin+0x1ff]@0:;outer@0:;leaf@0:; samples/count=3"), std::string::npos)
      << dump(*cpu);
  auto heap = read_bytes(gperftools_format(),
                         names + "--- heap\nheap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x400100 0x400300\n");
  ASSERT_TRUE(heap) << heap.error().message;
  EXPECT_NE(dump(*heap).find("main@0:;outer@0:;leaf@0:; inuse_space/bytes=8"), std::string::npos);
}

// Memory that is mapped in one piece and given back in others leaves bytes in no objects, and less than none of them.
TEST(Gperftools, BytesInNoObjectsCountAsTheyStand) {
  const std::string samples = "0: 4096 [1: 8192] @ 0x10\n-1: 512 [1: 1024] @ 0x20\n";
  EXPECT_EQ(read_stacks("heap profile: 1: 2 [3: 4] @ heapprofile\n" + samples),
            "alloc_objects=1: 10r\nalloc_space=8192: 10r\ninuse_objects=0: 10r\ninuse_space=4096: 10r\n"
            "alloc_objects=1: 20r\nalloc_space=1024: 20r\ninuse_objects=-1: 20r\ninuse_space=512: 20r\n");
  const std::string sampled = read_stacks("heap profile: 1: 2 [3: 4] @ heap_v2/1048576\n" + samples);
  EXPECT_NE(sampled.find("inuse_objects=0: 10r\ninuse_space=4096: 10r\n"), std::string::npos) << sampled;
  EXPECT_NE(sampled.find("inuse_objects=-1: 20r\ninuse_space=512: 20r\n"), std::string::npos) << sampled;
}

TEST(Gperftools, MessagesInFrontAreNoHeader) {
  const std::string text = "<jemalloc>: Leak summary: 64 bytes, 1 object\n<jemalloc>: Run a tool on it\nheap_v2/1\n"
                           "  t*: 1: 64 [0: 0]\n@ 0x10\n  t*: 1: 64 [0: 0]\n";
  EXPECT_TRUE(sniff_gperftools(as_span(text)));
  EXPECT_NE(read_stacks(text).find("inuse_space=64: 10r\n"), std::string::npos) << read_stacks(text);
}

TEST(Gperftools, MutexesOfGoAreContention) {
  const std::string text = "--- mutex:\ncycles/second=1000000000\nsampling period=1\n500 2 @ 0x10 0x20\n#\t0xf\tmain.f+0x1\t/a.go:3\n";
  EXPECT_TRUE(sniff_gperftools(as_span(text)));
  EXPECT_EQ(read_stacks(text), "contentions=2: 10r 20r\ndelay=500: 10r 20r\n");
}

TEST(Gperftools, ErrorsTellTheLine) {
  EXPECT_EQ(read_stacks("heap profile: 1: 2 [3: 4] @ heapprofile\nfoo\n"),
            "test-input: line 2: not \"objects: bytes [objects: bytes] @ addresses\"");
  EXPECT_EQ(read_stacks("heap profile: 1: 2 [3: 4] @ other\n"),
            "test-input: line 1: not supported: a heap profile of the kind other");
  EXPECT_EQ(read_stacks("go profile: total 1\n1 @ 0x12345678901234567\n"),
            "test-input: line 2: an address of more than 64 bits");
  EXPECT_EQ(read_stacks("heap profile: 0: 0 [0: 0] @ heapprofile\n"), "test-input: no samples");
}

TEST(Gperftools, SniffsItsOwnOnly) {
  for (std::string_view text : {"", "heap profile", "--- other", "total 5", "a;b 5\n", "\0\0\0\0", "profile: total 5\n"})
    EXPECT_FALSE(sniff_gperftools(as_span(text))) << text;
  EXPECT_TRUE(sniff_gperftools(as_span("\n# comment\ngoroutine profile: total 5\n")));
}

TEST(Gperftools, MutatedFilesNeverBreakIt) {
  const std::string seeds[] = {
      cpu_file(8, false), cpu_file(4, true),
      "heap profile: 1: 4096 [ 1: 4096] @ heap_v2/512\n1: 4096 [ 1: 4096] @ 0x400010\n" + std::string(kMap),
      "--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 10\n 3 2 @ 0x1\n 0x1 f (F:3)\n",
      "--- threadz 1 ---\n\n--- Thread 7f00 (name: main/7) stack: ---\n  PC:  0x10: wait(int)\n--- Memory map: ---\n"};
  std::mt19937 random(7);
  for (int i = 0; i < 1'500; ++i) {
    std::string bytes = seeds[random() % std::size(seeds)];
    for (unsigned n = 1 + random() % 4; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(gperftools_format(), bytes);
    EXPECT_TRUE(profile || !profile.error().message.empty());
  }
}

}  // namespace
}  // namespace cprof::format
