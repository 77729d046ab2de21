#include "format/text/text.h"

#include <random>

#include "format/folded/folded.h"
#include "format/test_profiles.h"
#include "format/text/text_lines.h"

namespace cprof::format {
namespace {

using namespace testing;

std::string written(const Profile& profile) {
  auto text = write_bytes(text_format(), profile, ".txt");
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  return text.value_or("");
}

std::string folded(const Profile& profile) { return write_bytes(folded_format(), profile, ".folded").value_or(""); }

TEST(TextWriter, AsPerfScriptPrints) {
  const std::string text = written(example_recording());
  const std::string first =
      "app 10/10 [001] 1.000000:    1000000 cpu-clock: \n"
      "\t          400020 a (inlined)\n"
      "\t          400020 b (inlined)\n"
      "\t          400020 c+0x20 (/usr/bin/app)\n"
      "\t          400010 main+0x10 (/usr/bin/app)\n"
      "\n";
  EXPECT_EQ(text.substr(0, first.size()), first);
  EXPECT_TRUE(text.ends_with(")\n\n"));
  EXPECT_NE(text.find("\t               0 [unknown] ([unknown])\n\n"), std::string::npos);
  EXPECT_NE(text.find("\tffffffff81000110 vfs_read ([kernel])\n"), std::string::npos);
  EXPECT_TRUE(sniff_text(as_span(text)));
}

TEST(Text, ExportAndImportAreEqual) {
  Profile original = example_recording();
  const std::string text = written(original);
  auto back = read_bytes(text_format(), text);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(folded(*back), folded(original));
  EXPECT_EQ(written(*back), text);
  ASSERT_EQ(back->samples.size(), original.samples.size());
  for (size_t i = 0; i < back->samples.size(); ++i) {
    EXPECT_EQ(back->samples[i].time_ns, original.samples[i].time_ns);
    EXPECT_EQ(back->samples[i].weight, original.samples[i].weight);
    EXPECT_EQ(back->samples[i].in_kernel, original.samples[i].in_kernel);
  }
}

TEST(Text, ImportsWithoutTimesStayUntimed) {
  auto stacks = read_bytes(folded_format(), "main;f 3\nmain;g 4\n");
  auto back = read_bytes(text_format(), written(*stacks));
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->timed());
  EXPECT_EQ(total(*back, "samples"), 7);
}

TEST(TextReader, KeepsTheStateOfTimesOutOfOrder) {
  auto profile = read_bytes(text_format(), "a 1 5.0: x:\n\t1 f (/b)\n\na 1 3.0: x:\n\t1 f (/b)\n\na 1 4.0: x:\n\t1 f (/b)\n");
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->samples.size(), 3u);
  EXPECT_EQ(profile->samples[0].time_ns, 3'000'000'000u);
  EXPECT_EQ(profile->samples[2].time_ns, 5'000'000'000u);
}

TEST(TextReader, SamplesWithoutFramesCount) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "app 1/2 [000] " + std::to_string(i + 1) + ".000000: 1 cycles: \n" + (i < 40 ? "\n" : "\t10 f+0x1 (/b)\n\n");
  auto profile = read_bytes(text_format(), text);
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "app;[unknown] 40\napp;f 60\n");
}

TEST(TextLines, HeadersOfEveryShape) {
  auto h = parse_header("Web Content 2 1234/5678 [003] 12.000001:     250000 cycles:u: ");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "Web Content 2");
  EXPECT_EQ(h->pid, 1234);
  EXPECT_EQ(h->tid, 5678);
  EXPECT_EQ(h->cpu, 3u);
  EXPECT_EQ(h->time_ns, 12'000'001'000u);
  EXPECT_EQ(h->period, 250000);
  EXPECT_EQ(h->event, "cycles:u");
  h = parse_header("[ET_NET 0] 21332 [001] 5.5: cycles:");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "[ET_NET 0]");
  EXPECT_EQ(h->tid, 21332);
  EXPECT_EQ(h->pid, -1);
  EXPECT_EQ(h->cpu, 1u);
  h = parse_header("  a:b/c  7 1.000000: sched:sched_switch: prev_comm=x");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "a:b/c");
  EXPECT_EQ(h->event, "sched:sched_switch");
  EXPECT_FALSE(parse_header("no header: here"));
  EXPECT_FALSE(parse_header("a 1 99999999999999999999.0: x:"));
}

TEST(TextLines, FramesOfEveryShape) {
  struct Case {
    std::string_view line, name, module;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"\t5574a37dd36e foo<(some_enum)0>::bar+0x30 (/bin/bastel)", "foo<(some_enum)0>::bar", "/bin/bastel"},
           {" 1 net/http.(*liveSwitchReader).Read (/path/bin)", "net/http.(*liveSwitchReader).Read", "/path/bin"},
           {" 1 Symbol::equals(char const*, int) const", "Symbol::equals(char const*, int) const", ""},
           {" 9c51fd34 java.lang.String.hashCode ([JIT app cache])", "java.lang.String.hashCode", "[JIT app cache]"},
           {" 1 pool.(*objectPool).Put+0x2f (/b)", "pool.(*objectPool).Put", "/b"},
           {" 1 operator+ (/b)", "operator+", "/b"},
           {" 1 foo+0xbar (/b)", "foo+0xbar", "/b"},
           {" 1 f+0x1 (/tmp/x (deleted))", "f", "/tmp/x (deleted)"},
           {" 1 [unknown] ([unknown])", "[unknown]", "[unknown]"}}) {
    auto frame = parse_frame(c.line);
    ASSERT_TRUE(frame) << c.line;
    EXPECT_EQ(frame->name, c.name);
    EXPECT_EQ(frame->module, c.module);
  }
  EXPECT_TRUE(parse_frame(" 10 f (inlined)")->is_inlined);
  EXPECT_FALSE(parse_frame(" not a frame"));
}

TEST(TextReader, NamelessCodeIsCalledAfterItsModule) {
  const std::string text =
      "a 1/1 [000] 1.000000:          1 x: \n"
      "\t    7f35c130035d [unknown] (/lib/libpthread-2.19.so)\n"
      "\t       12003c2c4 [unknown] ([unknown])\n"
      "\tc31ffd3800000001 [unknown] ([unknown])\n\n";
  auto profile = read_bytes(text_format(), text);
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "a;[unknown];[unknown];[libpthread-2.19.so] 1\n");
  EXPECT_EQ(written(*profile), text);
}

TEST(TextReader, OffsetsDoNotSplitFunctions) {
  auto profile = read_bytes(text_format(), "a 1 1.0: x:\n\t10 some_func+0x10 (/b)\n\na 1 2.0: x:\n\t20 some_func+0x20 (/b)");
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "a;some_func 2\n");
}

TEST(TextReader, SaysWhatIsMissing) {
  auto none = read_bytes(text_format(), "hello\nworld\n");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("line 1"), std::string::npos);
  EXPECT_FALSE(read_bytes(text_format(), ""));
}

TEST(Text, MutatedFilesNeverBreakIt) {
  const std::string good = written(example_recording());
  std::mt19937 random(11);
  for (int i = 0; i < 3'000; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 8; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(text_format(), bytes);
    EXPECT_TRUE(!profile || write_bytes(text_format(), *profile, ".txt"));
  }
}

}  // namespace
}  // namespace cprof::format
