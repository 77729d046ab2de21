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
  h = parse_header("func_ab 15294 cpu-clock: ");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "func_ab");
  EXPECT_EQ(h->tid, 15294);
  EXPECT_EQ(h->period, 0);
  EXPECT_EQ(h->event, "cpu-clock");
  h = parse_header("GC Thread#2  12/34 [002]     250000 cycles:u:");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "GC Thread#2");
  EXPECT_EQ(h->pid, 12);
  EXPECT_EQ(h->tid, 34);
  EXPECT_EQ(h->cpu, 2u);
  EXPECT_EQ(h->period, 250000);
  EXPECT_EQ(h->event, "cycles:u");
  h = parse_header(" 21332 cycles:");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "");
  EXPECT_EQ(h->tid, 21332);
  h = parse_header("srv 1.5: up 7/8 [000] 9.000001: 1 cycles: ");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->comm, "srv 1.5: up") << "the ids tell which time is the sample's";
  EXPECT_EQ(h->time_ns, 9'000'001'000u);
  h = parse_header("app 1.500000: sched:sched_switch: at 2.5: x");
  ASSERT_TRUE(h);
  EXPECT_EQ(h->time_ns, 1'500'000'000u);
  EXPECT_EQ(h->comm, "app");
  for (std::string_view none : {"events: Ir", "  12: 0x4 5", "Mon 3 12:00: x", "fn 12", "Samples: 3", "a b cycles:"})
    EXPECT_FALSE(parse_header(none)) << none;
  EXPECT_FALSE(parse_header("no header: here"));
  std::string long_line;  // as JSON without line breaks: quadratic work would take minutes
  for (int i = 0; i < 200'000; ++i) long_line += "\"a\":1,";
  EXPECT_FALSE(parse_header(long_line));
  EXPECT_FALSE(parse_header("a 1 99999999999999999999.0: x:"));
}

// Columns that perf script prints behind the CPU when it is asked to, and headers that are none.
TEST(TextLines, ColumnsBehindTheCpu) {
  for (std::string_view line : {"my app 11/12 [001] U    1.5: 100 cycles:u:", "my app 11/12 [001] 2022-01-01 10:10:10.123456 1.5: 100 cycles:u:",
                                "my app 11/12 [001] d..3. 1.5: 100 cycles:u:"}) {
    const auto header = parse_header(line);
    ASSERT_TRUE(header) << line;
    EXPECT_EQ(header->comm, "my app") << line;
    EXPECT_EQ(header->pid, 11) << line;
    EXPECT_EQ(header->tid, 12) << line;
    EXPECT_EQ(header->cpu, 1u) << line;
    EXPECT_EQ(header->time_ns, 1'500'000'000u) << line;
    EXPECT_EQ(header->period, 100) << line;
  }
  EXPECT_EQ(parse_header("a [001] b 77 1.5: x:")->comm, "a [001] b");
  EXPECT_FALSE(parse_header("goroutine 5 [select, 3 minutes]:"));
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
           {" 1 f(int)+0x1 (/opt/my app (copy)/x)", "f(int)", "/opt/my app (copy)/x"},
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

// A frame at address 0 is how a sample without a stack is written only when it is the only one.
TEST(TextReader, UnknownFramesAmongOthersStay) {
  auto profile = read_bytes(text_format(), "a 1 1.0: x:\n\t10 f (/b)\n\t0 [unknown] ([unknown])\n\n"
                                           "a 1 2.0: x:\n\t0 [unknown] ([unknown])\n\t10 f (/b)\n\n"
                                           "a 1 3.0: x:\n\t0 [unknown] ([unknown])\n\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "a;[unknown] 1\na;[unknown];f 1\na;f;[unknown] 1\n");
  EXPECT_EQ(std::ranges::count_if(profile->samples, [](auto& s) { return s.site.valid(); }), 2);
}

std::string stacks_of(std::string_view text) {
  auto p = read_bytes(text_format(), text);
  return p ? folded(*p) : p.error().message;
}

// perf script -F comm,tid,time,event,sym,dso; names that could be addresses are names here.
TEST(TextReader, FramesWithoutAddresses) {
  const std::string text = "app 7 1.5: cycles: \n add (/b)\n operator new(unsigned long) (/b)\n main+0x10 (/b)\n\n"
                           "app 7 2.5: cycles: \n f (/b)\n g (inlined)\n main\n\napp 7 3.5: cycles: \n\n";
  EXPECT_TRUE(sniff_text(as_span(text)));
  EXPECT_EQ(stacks_of(text), "app;[unknown] 1\napp;main;g;f 1\napp;main;operator new(unsigned long);add 1\n");
  auto p = read_bytes(text_format(), text);
  EXPECT_TRUE(p->diagnostics.entries().empty());
  EXPECT_EQ(stacks_of(written(*p)), stacks_of(text));
}

TEST(TextReader, AmongFramesWithAddressesWordsAreNone) {
  const std::string text = "app 7 1.5: cycles: \n\t  1000 f (/b)\n\t  SOME_WORD\n\t  2000 main (/b)\n\n";
  EXPECT_EQ(stacks_of(text), "app;main;f 1\n");
  EXPECT_EQ(read_bytes(text_format(), text)->diagnostics.count("text_malformed_lines"), 1u);
  auto alone = read_bytes(text_format(), "app 7 1.5: cycles: \n\t  SOME_WORD\n\n");
  EXPECT_EQ(folded(*alone), "app;[unknown] 1\n") << "perf puts one blank before a name that stands alone";
  EXPECT_EQ(alone->diagnostics.count("text_malformed_lines"), 1u);
}

// perf script -F +srcline
TEST(TextReader, SourceLinesBelowTheirFrames) {
  const std::string text = "app 7 1.5: cycles: \n\t    1000 a (inlined)\n  a.h:3\n\t    1000 f+0x4 (/b)\n  f.c:12\n\t    2000 main (/b)\n  ??:0\n\n"
                           "app 7 2.5: cycles: \n\t    1000 a (inlined)\n  a.h:4\n\t    1000 f+0x4 (/b)\n  f.c:12\n\t    2000 main (/b)\n  main.c:7\n\n";
  auto p = read_bytes(text_format(), text);
  ASSERT_TRUE(p);
  EXPECT_EQ(dump(*p), "main@0:;f@12:f.c;a@3:a.h; cycles/count=1 tid=7\nmain@7:main.c;f@12:f.c;a@4:a.h; cycles/count=1 tid=7\n");
  EXPECT_TRUE(p->diagnostics.entries().empty());
}

TEST(TextReader, SourceLinesThatTellNoLine) {
  const std::string frame = "\t          1010 f+0x10 (/b)\n", header = "app 7 1.000001: 1 cycles:\n";
  for (std::string_view below : {"  ??:0\n", "  libc.so.6[1f4a0]\n", "  read+17\n"}) {
    auto p = read_bytes(text_format(), header + frame + std::string(below) + "\n");
    ASSERT_TRUE(p);
    EXPECT_EQ(dump(*p), "f@0:; cycles/count=1 tid=7\n") << below;
    EXPECT_TRUE(p->diagnostics.entries().empty()) << below;
  }
  auto p = read_bytes(text_format(), header + frame + "  a.c:7 (discriminator 2)\n\n");
  ASSERT_TRUE(p);
  EXPECT_EQ(dump(*p), "f@7:a.c; cycles/count=1 tid=7\n");
}

TEST(TextReader, WithoutTimesOrIndentation) {
  auto profile = read_bytes(text_format(), "java 12 cycles:\nffffffff8103d0ca msr ([kernel.kallsyms])\n7f72 base(int) const (/l.so)\n\n"
                                           "ab 7 cycles:\n\t10 f (/b)\n ab 7/7 [001] 5 cycles:\n\t10 f (/b)\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_FALSE(profile->timed());
  EXPECT_EQ(total(*profile, "cycles"), 7);
  EXPECT_EQ(folded(*profile), "ab;f 6\njava;base(int) const;msr_[k] 1\n");
}

// The frame may stand behind the event, after a tracepoint's fields, or be a branch's two ends.
TEST(TextReader, FramesOnTheLineOfTheirSample) {
  auto profile = read_bytes(text_format(), " cafe 9 1.000001:   1 x:   7fa68b1f2d84 start+0x4 (/ld.so)\n"
                                           " cafe 9 1.000002:   1 x:  jmp   40bb19 from+0x9 (/b) =>   40bab9 to+0x2 (/b)\n"
                                           " cafe 9 1.000003:   1 x: 259,76 R 4096 () 57 + 8 [0] ffffffff8beead90 io ([kernel])\n"
                                           " cafe 9 1.000004:   1 x: prev=1234 (quiet)\n"
                                           " cafe 9 1.000005:   1 x:           401136 no_module\n"
                                           " cafe 9 1.000006:   1 x: 1234 decimals\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(folded(*profile), "cafe;[unknown] 2\ncafe;from 1\ncafe;io_[k] 1\ncafe;no_module 1\ncafe;start 1\n");
  EXPECT_EQ(profile->diagnostics.count("text_malformed_lines"), 0u);
}

// What PowerShell's redirection writes, and what Windows' editors put in front.
TEST(TextReader, MarkedEncodings) {
  const std::string text = "a\u00e9\U0001f600 1 1.0: x:\n\t10 f (/b)\n";
  const char16_t wide[] = u"a\u00e9\U0001f600 1 1.0: x:\n\t10 f (/b)\n";
  std::string little = "\xff\xfe", big = "\xfe\xff";
  for (const char16_t* c = wide; *c; ++c) {
    char low = static_cast<char>(*c & 0xff), high = static_cast<char>(*c >> 8);
    (little += low) += high;
    (big += high) += low;
  }
  for (const std::string& bytes : {text, "\xef\xbb\xbf" + text, little, big}) {
    const FormatInfo* info = find_by_content(as_span(bytes));
    ASSERT_TRUE(info);
    EXPECT_EQ(info->name, "text");
    auto profile = read_bytes(text_format(), bytes);
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_EQ(folded(*profile), "a\u00e9\U0001f600;f 1\n");
  }
  // Longer than a piece of the conversion, and cut inside a character.
  std::string many = "\xff\xfe";
  for (int i = 0; i < 30'000; ++i)
    for (char c : std::string_view("main;f 1\n")) (many += c) += '\0';
  many += "\x3d";
  auto stacks = read_bytes(folded_format(), many);
  ASSERT_TRUE(stacks) << stacks.error().message;
  EXPECT_EQ(folded(*stacks), "main;f 30000\n");
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

TEST(Text, ARecordingWithoutNamesKeepsOffsetsInFiles) {
  ProfileBuilder builder;
  auto lib = builder.mapping({.path = builder.intern("/usr/lib/libx.so"), .start = 0x7f0000001000, .end = 0x7f0000003000,
                              .file_offset = 0x1000, .load_bias = 0x7f0000000000});
  auto frame = [&](uint64_t offset, bool is_return) {
    return builder.location({.mapping = lib, .address = 0x7f0000000000 + offset, .file_address = offset, .is_return_address = is_return});
  };
  auto thread = builder.add_thread(builder.add_process(1, "app"), 1, "app");
  auto metric = builder.add_metric("cpu-clock", "nanoseconds", 0, true);
  LocationId path[] = {frame(0x1200, true), frame(0x2080, false)};
  builder.add_sample({.time_ns = 5000, .thread = thread, .site = builder.stack(path), .metric = metric});
  Profile original = builder.take();
  const std::string text = written(original);
  EXPECT_NE(text.find("\t    7f0000002080 [unknown] (/usr/lib/libx.so+0x2080)\n"), std::string::npos) << text;
  auto again = read_bytes(text_format(), text);
  ASSERT_TRUE(again);
  EXPECT_EQ(folded(*again), folded(original));
  EXPECT_EQ(folded(*again), "app;[libx.so+0x11ff];[libx.so+0x2080] 1\n");
  ASSERT_EQ(again->mappings.size(), 1u);
  EXPECT_EQ(again->mappings[0].start - again->mappings[0].file_offset, 0x7f0000000000u);
  EXPECT_EQ(written(*again), text);
}

TEST(Text, AFileWhoseNameEndsLikeAnOffsetKeepsIt) {
  auto p = read_bytes(text_format(), "app 1 1.0: cycles: \n\t  55d0 f+0x10 (/opt/a+0x1234)\n\n");
  ASSERT_TRUE(p);
  EXPECT_EQ(p->text(p->mappings.at(0).path), "/opt/a+0x1234");
}

TEST(Text, TheSameLineBelowOtherInlinedLinesIsAnotherPlace) {
  const std::string text =
      "a 1 1.0: cycles: \n\t 10 x (inlined)\n\t 10 f+0x1 (/b)\n\t 20 m (/b)\n\n"
      "a 1 1.1: cycles: \n\t 10 y (inlined)\n\t 10 f+0x1 (/b)\n\t 20 m (/b)\n\n"
      "a 1 1.2: cycles: \n\t 10 f+0x1 (/b)\n\t 20 m (/b)\n\n"
      "a 1 1.3: cycles: \n\t 10 y (inlined)\n\t 10 f+0x1 (/b)\n\t 20 m (/b)\n\n";
  auto p = read_bytes(text_format(), text);
  ASSERT_TRUE(p);
  EXPECT_EQ(folded(*p), "a;m;f 1\na;m;f;x 1\na;m;f;y 2\n");
}

}  // namespace
}  // namespace cprof::format
