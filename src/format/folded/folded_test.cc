#include "format/folded/folded.h"

#include <zlib.h>

#include <algorithm>
#include <random>

#include "format/folded/folded_tree.h"
#include "format/frame_text.h"
#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

std::string written(const Profile& profile, const WriteOptions& options = {}) {
  auto text = write_bytes(folded_format(), profile, ".folded", options);
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  return text.value_or("");
}

std::string error_of(std::string_view bytes) {
  auto profile = read_bytes(folded_format(), bytes);
  return profile ? "no error" : profile.error().message;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(text.substr(at, text.find('\n', at) - at));
  return lines;
}

// verifies: CL6
TEST(FoldedWriter, PlainNamesAndCounts) {
  EXPECT_EQ(written(example_recording()),
            "app;[unknown] 1\n"
            "app;main;c;b;a 2\n"
            "app;main;js main_[j] 1\n"
            "app;main;sys:call;do_syscall_64_[k];vfs_read_[k] 1\n"
            "tool;main 1\n");
}

TEST(FoldedWriter, ByThreadAndExtended) {
  WriteOptions options;
  options.by = GroupBy::kThread;
  EXPECT_EQ(lines_of(written(example_recording(), options)).at(1), "app;app;main;sys:call;do_syscall_64_[k];vfs_read_[k] 1");
  EXPECT_EQ(lines_of(written(example_recording(), options)).at(2), "app;worker 1;[unknown] 1");
  options = {};
  options.folded_style = FoldedStyle::kExtended;
  EXPECT_EQ(lines_of(written(example_recording(), options)).back(), "tool-20;main 1");
}

TEST(FoldedWriter, SamplesOfOtherEventsAreSaid) {
  Recording r;
  const LocationId start = r.code(0x10, {r.line("main")});
  r.sample(r.main, 0, {start});
  r.metric = r.builder.add_metric("page-faults", "count");
  r.sample(r.main, 1, {start});
  r.sample(r.main, 2, {start});
  const Profile profile = r.builder.take();
  Diagnostics losses;
  WriteOptions options;
  options.losses = &losses;
  EXPECT_EQ(written(profile, options), "app;main 1\n");
  EXPECT_EQ(losses.count("samples_of_other_events"), 2u);
  EXPECT_EQ(losses.entries().at("samples_of_other_events").example, "page-faults");

  Diagnostics none;
  options.losses = &none;
  options.metric = "page-faults";
  EXPECT_EQ(written(profile, options), "app;main 2000000\n");
  EXPECT_EQ(none.count("samples_of_other_events"), 0u) << "the one that was asked for";
}

TEST(FoldedWriter, ByContainerAndCgroup) {
  Profile p = example_recording();
  p.processes[0].cgroup = p.strings.intern("/machine.slice/machine-a;b.scope/payload");
  WriteOptions options;
  options.by = GroupBy::kContainer;
  EXPECT_EQ(lines_of(written(p, options)).at(0), "[no container];tool;main 1");
  EXPECT_EQ(lines_of(written(p, options)).at(1), "a:b;app;[unknown] 1");
  options.by = GroupBy::kCgroup;
  EXPECT_EQ(lines_of(written(p, options)).front(), "/machine.slice/machine-a:b.scope/payload;app;[unknown] 1");
  EXPECT_EQ(lines_of(written(p, options)).back(), "[no cgroup];tool;main 1");
}

TEST(FoldedPairs, WrittenAndReadBack) {
  auto read = read_bytes(folded_format(), "main;a 6 10\nmain;b 7 0\nmain;big 9007199254740993 2\n");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->metrics.size(), 2u);
  EXPECT_EQ(total(*read, "before"), 9007199254740993 + 13);
  EXPECT_EQ(total(*read, "after"), 12);
  EXPECT_EQ(read->text(read->run.default_metric), "after");
  char directory[] = "/tmp/cprof-format-test-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/x.folded";
  auto out = OutputFile::create(path);
  ASSERT_TRUE(out);
  ASSERT_TRUE(write_folded_pairs(*read, {profile::MetricId(0u), profile::MetricId(1u)}, *out));
  ASSERT_TRUE(out->commit());
  EXPECT_EQ(*read_text_file(path, 1000), "main;a 6 10\nmain;b 7 0\nmain;big 9007199254740993 2\n");
  unlink(path.c_str());
  rmdir(directory);
}

TEST(FoldedPairs, ANumberInANameIsNone) {
  for (std::string_view text : {"app;thread 1 5\napp;idle 7\n", "app;idle 7\napp;thread 1 5\n", "a;x 1 2.5\n", "a;x 1 -2\n", "a;x -1 2\n", "; 1 2\n"}) {
    auto read = read_bytes(folded_format(), text);
    if (read) {
      EXPECT_EQ(read->metrics.size(), 1u) << text;
    }
  }
  EXPECT_EQ(written(*read_bytes(folded_format(), "app;thread 1 5\napp;thread 1 6\napp;idle 7\n")), "app;idle 7\napp;thread 1 11\n");
  EXPECT_EQ(written(*read_bytes(folded_format(), "app;thread 1 5\napp;thread 2 6\n")), "app;thread 1 5\napp;thread 2 6\n")
      << "every stack ends in a number, and app;thread comes twice";
  EXPECT_EQ(written(*read_bytes(folded_format(), "b;x 1 5\nb;y 3 1\nb;x 1 6\n")), "b;x 1 11\nb;y 3 1\n");
  EXPECT_EQ(error_of("a;b 0 0\n"), "test-input: total weight is 0");
}

TEST(FoldedWriter, WallIsMicroseconds) {
  WriteOptions options;
  options.weight = Weight::kWall;
  auto lines = lines_of(written(example_recording(), options));
  EXPECT_NE(std::ranges::find(lines, "app;main;c;b;a 2000"), lines.end());
  options.weight = Weight::kOffCpu;
  auto none = write_bytes(folded_format(), example_recording(), ".folded", options);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("off-CPU"), std::string::npos);
}

TEST(FoldedWriter, TwiceIsIdentical) { EXPECT_EQ(written(example_recording()), written(example_recording())); }

TEST(FoldedWriter, LinesAreSortedByTheirBytes) {
  std::string input = "a;b 5\na 3\na!;c 1\na b;c 1\na 5;x 1\na;b;c 7\nab;x 1\na;b c 2\n";
  auto profile = read_bytes(folded_format(), input);
  ASSERT_TRUE(profile);
  auto lines = lines_of(written(*profile));
  EXPECT_EQ(lines.size(), 8u);
  EXPECT_TRUE(std::ranges::is_sorted(lines));
}

// verifies: CL6
TEST(FoldedWriter, EveryLineHasAProcessAndAFrame) {
  auto profile = read_bytes(folded_format(), "main 5\nmain;f 2\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(written(*profile), "[unknown];main 5\nmain;f 2\n");
}

TEST(FoldedWriter, ZeroSumsAreLeftOut) {
  auto profile = read_bytes(folded_format(), "a;b 5\na;b -5\na;c 1\na;d -4\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(written(*profile), "a;c 1\na;d -4\n");
}

TEST(FoldedReader, RoundTrip) {
  const std::string input =
      "app;main;f(int, char) 18014398509481985\n"
      "app;main;js main_[j] 1\n"
      "app;main;sys_read_[k] 7\n";
  auto profile = read_bytes(folded_format(), input);
  ASSERT_TRUE(profile);
  EXPECT_EQ(written(*profile), input);
  auto again = read_bytes(folded_format(), written(*profile));
  ASSERT_TRUE(again);
  EXPECT_EQ(dump(*again), dump(*profile));
  EXPECT_EQ(profile->locations.back().kind, FrameKind::kKernel);
}

TEST(FoldedReader, TakesWhatOthersWrite) {
  auto profile = read_bytes(folded_format(), "# comment of some tool\r\na;;b 1\r\n\r\n;a;b; 2\r\na;b 1.6\r\na;b\t+3");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(written(*profile), "a;b 8\n");
  EXPECT_EQ(profile->diagnostics.count("folded_rounded_counts"), 1u);
}

TEST(FoldedReader, MalformedLinesAreCounted) {
  auto profile = read_bytes(folded_format(), "a;b 1\nno count here\n;; 5\na;b 2\na;c 3\na;b 1e99\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->diagnostics.count("folded_malformed_lines"), 3u);
}

TEST(FoldedReader, SaysWhyNothingIsInIt) {
  EXPECT_EQ(error_of("a;b 0\na;c 0\nd 0\n"), "test-input: total weight is 0");
  EXPECT_EQ(error_of(""), "test-input: no stacks");
  EXPECT_EQ(error_of("hello\n"), "test-input: no stacks: line 1 is not \"frame;frame count\"");
}

TEST(FoldedReader, VeryDeepAndVeryMany) {
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "frame" + std::to_string(i) + ";";
  deep += "leaf 1\n";
  auto profile = read_bytes(folded_format(), deep);
  ASSERT_TRUE(profile);
  EXPECT_EQ(written(*profile), deep);
  EXPECT_TRUE(sniff_folded(as_span(std::string_view(deep).substr(0, 65536))));
}

TEST(FoldedReader, SumsStayAtTheLimit) {
  auto profile = read_bytes(folded_format(), "a;b 9223372036854775807\na;b 5\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(written(*profile), "a;b 9223372036854775807\n");
  EXPECT_EQ(profile->diagnostics.count("value_overflow"), 1u);
}

TEST(FoldedSniff, OnlyStacks) {
  EXPECT_TRUE(sniff_folded(as_span("main;f 1\n")));
  EXPECT_TRUE(sniff_folded(as_span("main 5\nother 6\n")));
  EXPECT_FALSE(sniff_folded(as_span("version: 1\ncreator: callgrind\n")));
  EXPECT_FALSE(sniff_folded(as_span("hello world\n")));
  EXPECT_FALSE(sniff_folded(as_span("{\"a\": [1, 2]}\n")));
  EXPECT_FALSE(sniff_folded(as_span("")));
}

TEST(Folded, MutatedFilesNeverBreakIt) {
  const std::string good = "app;main;f(int) 12\r\napp;x_[k] 5\n# c\napp;y_[j];;z 1.5\n";
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 4; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(folded_format(), bytes);
    const bool is_right = profile ? write_bytes(folded_format(), *profile, ".folded").has_value()
                                  : !profile.error().message.empty();
    EXPECT_TRUE(is_right);
  }
}

TEST(FrameText, KindsOfModules) {
  for (auto path : {"[kernel.kallsyms]", "[kernel]", "/usr/lib/debug/boot/vmlinux-5.4.14-x", "vmlinux", "[nfs]",
                    "/lib/modules/5/mlx5_core.ko", "/lib/modules/5/mlx5_core.ko.xz", "[guest.kernel.kallsyms]"})
    EXPECT_EQ(kind_of_module(path), FrameKind::kKernel) << path;
  for (auto path : {"/home/u/.debug/jit/x/jitted-10-3.so", "/tmp/perf-10.map", "[JIT app cache]", "[JIT] tid 7"})
    EXPECT_EQ(kind_of_module(path), FrameKind::kJit) << path;
  for (auto path : {"/home/u/vmlinux-tool/bin/app", "[vdso]", "[heap]", "", "/usr/bin/perf-top.map", "a.kobold"})
    EXPECT_EQ(kind_of_module(path), FrameKind::kUser) << path;
}

TEST(FoldedReader, TextOfAnotherKindIsRefused) {
  EXPECT_EQ(read_dump(folded_format(), "Attaching 1 probe...\n\n@[\n    a+12\n    b+13\n, comm]: 10\n"),
            "test-input: not folded stacks: 4 of 5 lines are not \"frame;frame count\", as line 1");
  auto some = read_bytes(folded_format(), "a;b 1\nnonsense\na;c 2\n");
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(total(*some, "samples"), 3);
}

TEST(FoldedReader, DecimalsThatAreWholeAreNoLoss) {
  auto whole = read_bytes(folded_format(), "a;b 1.0\na;c 1e3\n");
  ASSERT_TRUE(whole);
  EXPECT_EQ(total(*whole, "samples"), 1001);
  EXPECT_TRUE(whole->diagnostics.entries().empty());
  EXPECT_EQ(read_dump(folded_format(), "a;b 0.3\na;c 0.1\n"),
            "test-input: total weight is 0: all counts are below 0.5, and counts are whole numbers");
}

}  // namespace
}  // namespace cprof::format
