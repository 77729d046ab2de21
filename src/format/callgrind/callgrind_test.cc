#include "format/callgrind/callgrind.h"

#include <random>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

// Self costs by "function file:line", as the lines of a file tell them.
std::map<std::string, int64_t> self_costs(const Profile& profile, std::string_view metric) {
  std::map<std::string, int64_t> costs;
  for (const auto& row : profile.aggregates) {
    if (profile.text(profile.metrics[row.metric.index()].name) != metric) continue;
    const auto& line = profile.lines_of(profile.sites[row.site.index()].location)[0];
    const auto& f = profile.functions[line.function.index()];
    costs[std::string(profile.text(f.name)) + " " + std::string(profile.text(f.file)) + ":" + std::to_string(line.line)] += row.value;
  }
  return costs;
}

TEST(Callgrind, CostsGoToCallersAsTheirCallsCost) {
  EXPECT_EQ(read_dump(callgrind_format(), "events: Ir\nfl=(1) a.c\nfn=(1) main\n16 20\ncfn=(2) f\ncalls=1 50\n16 400\ncfi=(2) b.c\ncfn=(3) g\n"
                      "calls=3 20\n17 400\n\nfn=(2)\n51 100\ncfi=(2)\ncfn=(3)\ncalls=2 20\n52 300\n\nfl=(2)\nfn=(3)\n20 500\n+1 200\n"),
            "main@16:a.c; Ir/count=20\n"
            "main@16:a.c;f@51:a.c; Ir/count=100\n"
            "main@16:a.c;f@52:a.c;g@20:b.c; Ir/count=100\n"
            "main@16:a.c;f@52:a.c;g@21:b.c; Ir/count=200\n"
            "main@17:a.c;g@20:b.c; Ir/count=400\n");
}

TEST(Callgrind, SeveralEventsEachWithItsOwnShares) {
  auto profile = read_bytes(callgrind_format(),
                            "version: 1\ncreator: xdebug 3\ncmd: /x/index.php\npositions: line\nevents: Time_(10ns) Memory_(bytes)\n"
                            "fn=main\n1 20 15\ncfn=f\ncalls=1 5\n1 40 20\ncfn=g\ncalls=1 9\n2 40 30\nfn=f\n5 10 15\ncfn=g\n"
                            "calls=1 9\n6 30 5\nfn=g\n9 70 35\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->run.command, "/x/index.php");
  EXPECT_EQ(dump(*profile),
            "main@1:; Memory/bytes=15\nmain@1:; Time/nanoseconds=200\nmain@1:;f@5:; Memory/bytes=15\n"
            "main@1:;f@5:; Time/nanoseconds=100\nmain@1:;f@6:;g@9:; Memory/bytes=5\nmain@1:;f@6:;g@9:; Time/nanoseconds=300\n"
            "main@2:;g@9:; Memory/bytes=30\nmain@2:;g@9:; Time/nanoseconds=400\n");
}

TEST(Callgrind, PositionsNamesInlinedCodeAndJumps) {
  auto profile = read_bytes(callgrind_format(),
                            "# callgrind format\npid: 7\ncmd: ./app -x\npositions: instr line\nevents: Ir Dr\nob=(1) /bin/app\n"
                            "fl=(1) a.c\nfn=(1) main\n0x1000 10 3 1\n+4 +2 5\nfi=(2) in.h\n+4 7 2\njcnd=1/2 0x1000 10\n* *\n"
                            "cob=(2) /lib/libx.so\ncfi=(3) x.c\ncfn=(2) f\ncalls=2 0x9000 1\n+8 -1 60 9\nfe=(1)\n-4 10 1\n"
                            "ob=(2)\nfl=(3)\nfn=(2)\n0x9000 1 60 9\njump=3 +5 +1\n* *\nsummary: 71 10\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(self_costs(*profile, "Ir"), (std::map<std::string, int64_t>{
      {"main a.c:10", 4}, {"main a.c:12", 5}, {"main in.h:7", 2}, {"f x.c:1", 60}}));
  EXPECT_EQ(self_costs(*profile, "Dr"), (std::map<std::string, int64_t>{{"main a.c:10", 1}, {"f x.c:1", 9}}));
  EXPECT_NE(dump(*profile).find("main@6:in.h;f@1:x.c; Ir/count=60 tid=7"), std::string::npos) << dump(*profile);
  EXPECT_EQ(profile->text(profile->processes[0].name), "app");
  EXPECT_EQ(profile->diagnostics.count("callgrind_total"), 0u);
  ASSERT_EQ(profile->mappings.size(), 2u);
}

// What is called lies in the caller's file unless cfi= says else, and the next call says it anew.
TEST(Callgrind, CalledFileHoldsForOneCall) {
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfl=a.c\nfn=a\n1 1\ncfl=b.c\ncfn=b\ncalls=1 1\n1 5\ncfn=c\ncalls=1 1\n1 7\nfn=c\n1 7\nfl=b.c\nfn=b\n1 5\n"),
            "a@1:a.c; I/count=1\na@1:a.c;b@1:b.c; I/count=5\na@1:a.c;c@1:a.c; I/count=7\n");
}

// Calls that cost more than the function did all in all: its own costs decide when the file tells their sum.
TEST(Callgrind, CallsThatClaimTooMuch) {
  const std::string text = "fn=a\n1 10\ncfn=c\ncalls=1 1\n2 10\ncfn=b\ncalls=1 1\n3 20\nfn=b\n4 10\ncfn=c\ncalls=1 1\n5 10\nfn=c\n6 10\n";
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nsummary: 30\n" + text),
            "a@1:; I/count=10\na@2:;c@6:; I/count=5\na@3:;b@4:; I/count=10\na@3:;b@5:;c@6:; I/count=5\n");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\n" + text),
            "a@1:; I/count=10\na@2:;c@6:; I/count=10\na@3:;b@4:; I/count=10\na@3:;b@5:;c@6:; I/count=10\n");
}

// Recursion, alone and in circles: self costs stay exact, and nothing goes on without end.
TEST(Callgrind, RecursionIsFoldedAndExact) {
  auto profile = read_bytes(callgrind_format(),
                            "events: I\nfn=main\n1 10\ncfn=fib\ncalls=1 1\n2 700\nfn=fib\n5 700\ncfn=fib\ncalls=99 5\n6 4000\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile), "main@1:; I/count=10\nmain@2:;fib@5:; I/count=700\n");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=main\n9 1\ncfn=a\ncalls=1 1\n9 30\n"
                      "fn=a\n1 10\ncfn=b\ncalls=1 1\n2 30\nfn=b\n3 20\ncfn=a\ncalls=1 1\n4 30\n"),
            "main@9:; I/count=1\nmain@9:;a@1:; I/count=10\nmain@9:;a@2:;b@3:; I/count=20\n");
}

// Layers of functions that all call all of the next layer: more stacks than there is memory.
TEST(Callgrind, ManyStacksAreBounded) {
  constexpr int kLayers = 12, kWidth = 8;
  constexpr int64_t kSelf = 1'000'000'000;
  std::string text = "events: I\n";
  for (int layer = 0; layer < kLayers; ++layer)
    for (int i = 0; i < kWidth; ++i) {
      text += "fn=f" + std::to_string(layer) + "_" + std::to_string(i) + "\n" + std::to_string(1 + i) + " " + std::to_string(kSelf) + "\n";
      for (int j = 0; j < kWidth && layer + 1 < kLayers; ++j)
        text += "cfn=f" + std::to_string(layer + 1) + "_" + std::to_string(j) + "\ncalls=1 1\n1 " +
                std::to_string(kSelf * (kLayers - layer - 1) / kWidth) + "\n";
    }
  auto profile = read_bytes(callgrind_format(), text);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(total(*profile, "I"), kSelf * kLayers * kWidth);
  for (const auto& [name, cost] : self_costs(*profile, "I")) EXPECT_EQ(cost, kSelf) << name;
  EXPECT_EQ(profile->diagnostics.count("callgrind_stacks_cut"), 1u);
  EXPECT_LT(profile->sites.size(), 1'000'000u);
}

TEST(Callgrind, AChainOfCallsIsNoRecursionOfOurs) {
  std::string text = "events: I\n";
  for (int i = 0; i < 50'000; ++i)
    text += "fn=f" + std::to_string(i) + "\n1 1\ncfn=f" + std::to_string(i + 1) + "\ncalls=1 1\n1 " + std::to_string(50'000 - i) + "\n";
  auto profile = read_bytes(callgrind_format(), text + "fn=f50000\n1 1\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(total(*profile, "I"), 50'001);
}

TEST(Callgrind, ErrorsTellTheLine) {
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\n1 2\n"), "test-input: line 2: costs before \"fn=\"");
  EXPECT_EQ(read_dump(callgrind_format(), "fn=a\n1 2\n"), "test-input: line 2: costs before \"events:\"");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\n1 2 3\n"), "test-input: line 3: more costs than the 1 events");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\nx1 2\n"), "test-input: line 3: neither a header, nor a name, nor costs");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\ncalls=1 2\n"), "test-input: line 3: calls= without cfn=");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\n1 2\ncfn=b\ncalls=1 2\n"), "test-input: ends inside a call, at line 5");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\n1 x\n"), "test-input: line 3: \"x\" is not a cost");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\nzz=1\n"), "test-input: line 3: \"zz=\" is not known");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\n"), "test-input: no costs");
  EXPECT_EQ(read_dump(callgrind_format(), "events: I\nfn=a\n1 2\nevents: J\n"), "test-input: line 4: not supported: parts with other events");
}

// What some writers do with functions that have no costs of their own.
TEST(Callgrind, NamesThatAreNeverToldAreNumbers) {
  auto profile = read_bytes(callgrind_format(), "events: I\nfn=(1) main\n1 10\ncfi=(7)\ncfn=(9)\ncalls=1 5\n2 20\nfn=(9)\n5 20\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(total(*profile, "I"), 30);
  EXPECT_NE(dump(*profile).find("(9)@5:"), std::string::npos) << dump(*profile);
  EXPECT_EQ(profile->diagnostics.count("callgrind_untold_names"), 2u);
}

// Memory that a function gave back: each line keeps its amount, and where it was given back goes by the other event.
TEST(Callgrind, CostsBelowZero) {
  auto profile = read_bytes(callgrind_format(),
                            "events: Time_(10ns) Memory_(bytes)\nfn=main\n1 10 100\ncfn=f\ncalls=1 5\n2 30 -40\ncfn=g\ncalls=1 9\n"
                            "3 10 8\nfn=g\n9 10 8\ncfn=f\ncalls=1 5\n10 10 -24\nfn=f\n5 20 -100\n6 20 36\n");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(self_costs(*profile, "Memory"), (std::map<std::string, int64_t>{
      {"main :1", 100}, {"g :9", 8}, {"f :5", -100}, {"f :6", 36}}));
  EXPECT_EQ(self_costs(*profile, "Time"), (std::map<std::string, int64_t>{
      {"main :1", 100}, {"g :9", 100}, {"f :5", 200}, {"f :6", 200}}));
  EXPECT_NE(dump(*profile).find("main@2:;f@5:; Memory/bytes=-75\n"), std::string::npos) << dump(*profile);
  auto alone = read_bytes(callgrind_format(), "events: Memory\nfn=main\n1 -10\ncfn=f\ncalls=1 5\n2 -30\nfn=f\n5 -30\n");
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(dump(*alone), "main@1:; Memory/count=-10\nmain@2:;f@5:; Memory/count=-30\n");
}

TEST(Callgrind, TotalsThatDifferAreNoted) {
  auto profile = read_bytes(callgrind_format(), "events: I\nsummary: 9\nfn=a\n1 2\n");
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->diagnostics.count("callgrind_total"), 1u);
}

TEST(Callgrind, RoundTrip) {
  const Profile recording = example_recording();
  auto written = write_bytes(callgrind_format(), recording, ".callgrind");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*written, *write_bytes(callgrind_format(), recording, ".callgrind"));
  auto first = read_bytes(callgrind_format(), *written);
  ASSERT_TRUE(first) << first.error().message << *written;
  EXPECT_EQ(total(*first, "cpu-clock"), 6'000'000);
  EXPECT_EQ(self_costs(*first, "cpu-clock")["a a.cc:3"], 2'000'000);
  auto again = write_bytes(callgrind_format(), *first, ".callgrind");
  ASSERT_TRUE(again);
  auto second = read_bytes(callgrind_format(), *again);
  ASSERT_TRUE(second);
  EXPECT_EQ(dump(*second), dump(*first));
}

TEST(Callgrind, WriterSumsCallsOnceAStack) {
  auto profile = read_bytes(callgrind_format(), "events: I\nfn=main\n1 1\ncfn=f\ncalls=1 1\n2 10\nfn=f\n5 10\n");
  ASSERT_TRUE(profile);
  profile::ProfileBuilder builder;
  auto metric = builder.add_metric("alloc space", "bytes");
  auto line = [&](std::string_view name) {
    profile::Line l{builder.function({.name = builder.intern(name)}), 1};
    return builder.named_location({}, FrameKind::kUser, {&l, 1});
  };
  const std::vector<LocationId> path = {line("a"), line("b"), line("a"), line("b")};
  builder.add_aggregate({.site = builder.stack(path), .metric = metric, .value = 5});
  builder.add_aggregate({.site = builder.stack({path.data(), 1}), .metric = metric, .value = -5});
  Diagnostics losses;
  WriteOptions options;
  options.losses = &losses;
  auto written = write_bytes(callgrind_format(), builder.take(), ".callgrind", options);
  ASSERT_TRUE(written);
  EXPECT_NE(written->find("event: alloc_space : alloc space (bytes)\nevents: alloc_space\nsummary: 5\n"), std::string::npos) << *written;
  EXPECT_NE(written->find("fn=(1) a\ncfn=(2) b\ncalls=1 1\n1 5\n"), std::string::npos) << *written;
  EXPECT_EQ(losses.count("callgrind_negative_values"), 1u);
}

TEST(Callgrind, Sniff) {
  EXPECT_TRUE(sniff_callgrind(as_span("# callgrind format\n")));
  EXPECT_TRUE(sniff_callgrind(as_span("version: 1\ncreator: xdebug 2.2\ncmd: x\npart: 1\n\nevents: Time\n")));
  EXPECT_TRUE(sniff_callgrind(as_span("desc: I1 cache:\ncmd: ls\nevents: Ir I1mr\n")));
  EXPECT_FALSE(sniff_callgrind(as_span("events:\n")));
  EXPECT_FALSE(sniff_callgrind(as_span("key: value\nevents: Ir\n")));
  EXPECT_FALSE(sniff_callgrind(as_span("version: 1\n")));
}

TEST(Callgrind, MutatedFilesNeverBreakIt) {
  const std::string good =
      "pid: 7\npositions: instr line\nevents: Ir Dr\nob=(1) /bin/app\nfl=(1) a.c\nfn=(1) main\n0x1000 10 3 1\n+4 +2 5\n"
      "fi=(2) in.h\n+4 7 2\njcnd=1/2 0x1000 10\n* *\ncob=(2) /lib/libx.so\ncfi=(3) x.c\ncfn=(2) f\ncalls=2 0x9000 1\n"
      "+8 -1 60 9\nfe=(1)\n-4 10 1\nob=(2)\nfl=(3)\nfn=(2)\n0x9000 1 60 9\ncfn=(1)\ncalls=1 0\n* * 7\n";
  std::mt19937 random(7);
  for (int i = 0; i < 1'500; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(callgrind_format(), bytes);
    EXPECT_TRUE(profile ? write_bytes(callgrind_format(), *profile, ".callgrind").has_value() : !profile.error().message.empty());
  }
}

}  // namespace
}  // namespace cprof::format
