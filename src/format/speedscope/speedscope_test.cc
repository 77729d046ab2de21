#include "format/speedscope/speedscope.h"

#include <array>
#include <random>

#include "format/speedscope/speedscope_builder.h"
#include "format/speedscope/speedscope_columns.h"
#include "format/speedscope/speedscope_values.h"
#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

std::string document(std::string_view profiles, std::string_view frames = R"([{"name":"a"},{"name":"b"},{"name":"c"}])") {
  return R"({"profiles":)" + std::string(profiles) + R"(,"shared":{"frames":)" + std::string(frames) +
         R"(},"$schema":"https://www.speedscope.app/file-format-schema.json"})";
}

std::string read_dump(std::string_view text) {
  auto profile = read_bytes(speedscope_format(), text);
  return profile ? dump(*profile) : profile.error().message;
}

// "name 10+5 /depth" of every slice.
std::string slices(const Profile& profile) {
  std::string all;
  for (const auto& s : profile.slices)
    all += std::string(profile.text(s.name)) + " " + std::to_string(s.start_ns) + "+" + std::to_string(s.duration_ns) +
           " /" + std::to_string(s.depth) + "\n";
  return all;
}

TEST(SpeedscopeColumns, GiveBackWhatWasPut) {
  SpeedscopeColumn<SpeedscopeValue> values;
  SpeedscopeColumn<SpeedscopeEvent> events;
  SpeedscopeColumn<profile::CallSiteId> sites;
  std::vector<SpeedscopeValue> expected;
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{63}, int64_t{64}, INT64_MAX / 8, INT64_MAX, INT64_MIN})
    for (uint8_t decimals : {0, 3, 9}) expected.push_back({value, decimals});
  for (int round = 0; round < 5000; ++round)
    for (const SpeedscopeValue& value : expected) {
      values.add(value);
      events.add({value, UINT32_MAX - value.decimals, value.value < 0});
      sites.add(value.value ? profile::CallSiteId(size_t{value.decimals}) : profile::CallSiteId());
    }
  ASSERT_EQ(values.size(), 5000 * expected.size());
  SpeedscopeColumn<SpeedscopeValue>::Cursor value_at(values);
  SpeedscopeColumn<SpeedscopeEvent>::Cursor event_at(events);
  SpeedscopeColumn<profile::CallSiteId>::Cursor site_at(sites);
  for (size_t i = 0; i < values.size(); ++i) {
    const SpeedscopeValue wanted = expected[i % expected.size()], value = value_at.next();
    const SpeedscopeEvent event = event_at.next();
    ASSERT_EQ(std::pair(value.value, value.decimals), std::pair(wanted.value, wanted.decimals));
    ASSERT_EQ(std::pair(event.at.value, event.at.decimals), std::pair(wanted.value, wanted.decimals));
    ASSERT_EQ(event.frame, UINT32_MAX - wanted.decimals);
    ASSERT_EQ(event.is_open, wanted.value < 0);
    ASSERT_EQ(site_at.next(), wanted.value ? profile::CallSiteId(size_t{wanted.decimals}) : profile::CallSiteId());
  }
}

TEST(Speedscope, SampledBecomesSumsAndSlices) {
  auto profile = read_bytes(speedscope_format(), document(R"([{"weights":[1,1,2,0.5,3],"samples":[[0,1],[0,1],[0,2],[],[0]],
      "endValue":9,"startValue":1,"unit":"microseconds","name":"x","type":"sampled"}])"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile), "a@0:; wall/nanoseconds=3000\na@0:;b@0:; wall/nanoseconds=2000\na@0:;c@0:; wall/nanoseconds=2000\n");
  EXPECT_EQ(slices(*profile), "a 1000+4000 /0\nb 1000+2000 /1\nc 3000+2000 /1\na 5500+3000 /0\n");
  EXPECT_EQ(profile->text(profile->tracks.at(0).name), "x");
  EXPECT_EQ(profile->run.start_ns, 1000u);
  EXPECT_EQ(profile->run.end_ns, 8500u);
}

TEST(Speedscope, EventedBecomesSumsAndSlices) {
  auto profile = read_bytes(speedscope_format(), document(R"([{"type":"evented","name":"x","unit":"milliseconds","startValue":0,
      "endValue":10,"events":[{"type":"O","frame":0,"at":1},{"type":"O","frame":1,"at":1.5},{"type":"C","frame":1,"at":4},
      {"type":"C","frame":0,"at":6},{"at":8,"frame":2,"type":"O"}]}])"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile),
            "a@0:; wall/nanoseconds=2500000\na@0:;b@0:; wall/nanoseconds=2500000\nc@0:; wall/nanoseconds=2000000\n");
  EXPECT_EQ(slices(*profile), "a 1000000+5000000 /0\nb 1500000+2500000 /1\nc 8000000+2000000 /0\n");
  EXPECT_EQ(profile->diagnostics.count("speedscope_open_frames"), 1u);
}

// Two threads, each with a stack of three rows whose leaf changes with every sample: the leaves go, both threads stay.
TEST(Speedscope, LongFilesLoseTheirDeepestRows) {
  SpeedscopeBuilder builder("test-input", 20);
  for (const char* name : {"main", "f", "g", "h"}) builder.add_frame(name, "", 0, 0);
  for (const char* thread : {"one", "two"}) {
    SpeedscopeProfile from;
    from.type = "sampled";
    from.name = thread;
    from.unit = "nanoseconds";
    for (uint32_t i = 0; i < 30; ++i) {
      from.samples.add(builder.stack(std::array<uint32_t, 3>{0, 1, 2 + i % 2}));
      from.weights.add({10, 0});
    }
    ASSERT_TRUE(builder.add_profile(from));
  }
  auto profile = builder.take();
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(total(*profile, "wall"), 600);
  ASSERT_EQ(profile->slices.size(), 4u);
  for (const auto& slice : profile->slices) EXPECT_EQ(slice.duration_ns, 300u);
  EXPECT_NE(profile->slices[0].thread, profile->slices[2].thread);
  EXPECT_EQ(profile->diagnostics.count("speedscope_slices_cut"), 60u);
}

TEST(Speedscope, OneRowThatIsTooLongEndsEarly) {
  SpeedscopeBuilder builder("test-input", 20);
  for (const char* name : {"f", "g"}) builder.add_frame(name, "", 0, 0);
  SpeedscopeProfile from;
  from.type = "sampled";
  from.unit = "nanoseconds";
  for (uint32_t i = 0; i < 30; ++i) {
    from.samples.add(builder.stack(std::array<uint32_t, 1>{i % 2}));
    from.weights.add({10, 0});
  }
  ASSERT_TRUE(builder.add_profile(from));
  auto profile = builder.take();
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(total(*profile, "wall"), 300);
  EXPECT_EQ(profile->slices.size(), 20u);
  EXPECT_EQ(profile->diagnostics.count("speedscope_slices_cut"), 10u);
}

TEST(Speedscope, EveryUnit) {
  for (auto [unit, text] : {std::pair("none", "weight/count=2"), {"bytes", "bytes/bytes=2"},
                            {"nanoseconds", "wall/nanoseconds=2"}, {"microseconds", "wall/nanoseconds=1500"},
                            {"milliseconds", "wall/nanoseconds=1500000"}, {"seconds", "wall/nanoseconds=1500000000"}}) {
    auto profile = read_bytes(speedscope_format(), document(std::string(R"([{"type":"sampled","name":"x","startValue":0,"endValue":2,
        "samples":[[0]],"weights":[1.5],"unit":")") + unit + R"("}])"));
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_EQ(dump(*profile), "a@0:; " + std::string(text) + "\n");
    EXPECT_EQ(profile->slices.size(), std::string_view(unit).ends_with("seconds") ? 1u : 0u) << unit;
    EXPECT_EQ(profile->diagnostics.count("speedscope_rounded_values"), std::string_view(text).ends_with("=2") ? 1u : 0u);
  }
}

TEST(Speedscope, SamplesWithoutAStackStay) {
  EXPECT_EQ(read_dump(document(R"([{"type":"sampled","name":"x","unit":"none","startValue":0,"endValue":3,
      "samples":[[],[0]],"weights":[2,1]}])")), "[unknown]@0:; weight/count=2\na@0:; weight/count=1\n");
}

TEST(Speedscope, SeveralProfilesAreThreads) {
  const std::string one = R"({"type":"sampled","unit":"none","startValue":0,"endValue":1,"samples":[[0]],"weights":[1],"name":)";
  auto profile = read_bytes(speedscope_format(), document("[" + one + "\"x\"}," + one + "\"y\"}]"));
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->threads.size(), 2u);
  EXPECT_EQ(profile->text(profile->threads[1].name), "y");
  EXPECT_EQ(dump(*profile), "a@0:; weight/count=1 tid=1\na@0:; weight/count=1 tid=2\n");
}

TEST(Speedscope, FramesKeepTheirPlace) {
  EXPECT_EQ(read_dump(document(R"([{"type":"sampled","name":"x","unit":"none","startValue":0,"endValue":1,"samples":[[0,1]],
      "weights":[1]}])", R"([{"name":"main","file":"m.cc","line":7,"col":3},{"name":"\"quoted\"","line":null}])")),
            "main@7:m.cc;\"quoted\"@0:; weight/count=1\n");
}

// The close of a comes before that of b, which it called; then one too many, and a time that goes back.
TEST(Speedscope, EventsThatDoNotFit) {
  auto profile = read_bytes(speedscope_format(), document(R"([{"type":"evented","name":"x","unit":"nanoseconds","startValue":0,"endValue":9,"events":[
      {"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2},{"type":"C","frame":0,"at":5},{"type":"C","frame":1,"at":5},
      {"type":"O","frame":2,"at":4},{"type":"C","frame":2,"at":8}]}])"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile), "a@0:; wall/nanoseconds=2\na@0:;b@0:; wall/nanoseconds=3\nc@0:; wall/nanoseconds=3\n");
  for (std::string_view name : {"speedscope_closes_not_nested", "speedscope_unmatched_closes", "speedscope_times_back"})
    EXPECT_EQ(profile->diagnostics.count(name), 1u) << name;
}

TEST(Speedscope, ErrorsSayWhat) {
  const auto events = [](std::string_view list) {
    return read_dump(document(R"([{"type":"evented","name":"x","unit":"none","startValue":0,"endValue":9,"events":)" +
                              std::string(list) + "}]"));
  };
  EXPECT_TRUE(events(R"([{"type":"O","frame":0}])").ends_with("an event without type, frame or at"));
  EXPECT_TRUE(events(R"([{"type":"O","frame":-1,"at":0}])").ends_with("-1 is not the number of a frame"));
  EXPECT_TRUE(events(R"([{"type":"O","frame":0,"at":1e300}])").ends_with("1e300 is not a value that 64 bits hold"));
  EXPECT_EQ(events(R"([{"type":"O","frame":7,"at":0},{"type":"C","frame":7,"at":1}])"),
            "test-input: frame 7 is used, the file has 3");
  EXPECT_EQ(read_dump(document("[]")), "test-input: no profiles");
  EXPECT_TRUE(read_dump(document(R"([{"type":"sampled","samples":[[0]],"weights":[]}])"))
                  .ends_with("profile 1 has 1 samples and 0 weights"));
  EXPECT_TRUE(read_dump(R"({"profiles":[{"samples":[3]}]})").ends_with("a number where an array should be"));
  EXPECT_TRUE(read_dump(document(R"([{"type":"evented","unit":"none")")).starts_with("test-input: "));
}

TEST(Speedscope, RoundTripOfAnImport) {
  const std::string first = document(R"([{"type":"sampled","name":"x","unit":"milliseconds","startValue":0,"endValue":3,
      "samples":[[0,1],[2]],"weights":[2,1]},{"type":"sampled","name":"y","unit":"bytes","startValue":0,"endValue":3,
      "samples":[[0,1]],"weights":[-2]}])");
  auto profile = read_bytes(speedscope_format(), first);
  ASSERT_TRUE(profile) << profile.error().message;
  auto written = write_bytes(speedscope_format(), *profile, ".speedscope.json");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*written, *write_bytes(speedscope_format(), *profile, ".speedscope.json"));
  EXPECT_EQ(find_by_content(as_span(*written))->name, "speedscope");
  auto again = read_bytes(speedscope_format(), *written);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(dump(*again), dump(*profile));
}

// Sums by stack, metric and thread of a recording come back; its gaps are not time of any stack.
TEST(Speedscope, RecordingOut) {
  const Profile recording = example_recording();
  auto written = write_bytes(speedscope_format(), recording, ".speedscope.json");
  ASSERT_TRUE(written) << written.error().message;
  auto again = read_bytes(speedscope_format(), *written);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(total(*again, "cpu-clock"), 6'000'000);
  EXPECT_NE(dump(*again).find("main@100:main.cc;c@9:c.cc;b@7:b.cc;a@3:a.cc; cpu-clock/nanoseconds=2000000 tid=10"),
            std::string::npos) << dump(*again);
  EXPECT_NE(dump(*again).find("[unknown]@0:; cpu-clock/nanoseconds=1000000 tid=11"), std::string::npos);
  WriteOptions options;
  options.weight = Weight::kWall;
  auto wall = write_bytes(speedscope_format(), recording, ".speedscope.json", options);
  ASSERT_TRUE(wall);
  EXPECT_NE(wall->find("\"metric\":\"wall\""), std::string::npos);
}

// Three samples, 5 s apart from each other but 20 ms long each: 60 ms, and a gap between.
TEST(Speedscope, GapsAreNotBusy) {
  Recording r;
  auto here = r.code(0x10, {r.line("f")});
  for (uint64_t ms : {0u, 20u, 5000u})
    r.builder.add_sample({.time_ns = Recording::kStart + ms * Recording::kMs, .weight = 20'000'000, .thread = r.main,
                          .site = r.builder.stack({&here, 1}), .metric = r.metric});
  auto written = write_bytes(speedscope_format(), r.builder.take(), ".speedscope.json");
  ASSERT_TRUE(written);
  EXPECT_NE(written->find(R"("samples":[[0],[0],[],[0]])"), std::string::npos) << *written;
  auto again = read_bytes(speedscope_format(), *written);
  ASSERT_TRUE(again);
  EXPECT_EQ(total(*again, "cpu-clock"), 60'000'000);
  EXPECT_EQ(slices(*again), "f 1000000000+40000000 /0\nf 6000000000+20000000 /0\n");
}

TEST(Speedscope, Values) {
  uint64_t rounded = 0;
  EXPECT_EQ(in_unit(*parse_speedscope_value("1700000000.123456789"), speedscope_unit("seconds"), rounded), 1700000000123456789);
  EXPECT_EQ(in_unit(*parse_speedscope_value("-1.5"), speedscope_unit("none"), rounded), -2);
  EXPECT_EQ(rounded, 1u);
  EXPECT_EQ(in_unit(*parse_speedscope_value("9223372036854775807"), speedscope_unit("seconds"), rounded), std::nullopt);
}

TEST(Speedscope, SniffIsIndependentOfOrder) {
  EXPECT_TRUE(sniff_speedscope(as_span(R"({"$schema":"https://www.speedscope.app/file-format-schema.json")")));
  EXPECT_TRUE(sniff_speedscope(as_span(R"({"profiles":[{"endValue":4,"events":[)")));
  EXPECT_TRUE(sniff_speedscope(as_span(R"({"shared":{"frames":[]},"profiles":[]})")));
  EXPECT_FALSE(sniff_speedscope(as_span(R"({"traceEvents":[]})")));
  EXPECT_FALSE(sniff_speedscope(as_span(R"([{"profiles":[]}])")));
  EXPECT_FALSE(sniff_speedscope(as_span("profiles")));
}

TEST(Speedscope, MutatedFilesNeverBreakIt) {
  const std::string good = document(R"([{"type":"sampled","name":"x","unit":"milliseconds","startValue":0,"endValue":3,
      "samples":[[0,1],[2]],"weights":[2,1]},{"type":"evented","name":"y","unit":"none","startValue":0,"endValue":3,
      "events":[{"type":"O","frame":0,"at":1},{"type":"C","frame":0,"at":2}]}])");
  std::mt19937 random(7);
  for (int i = 0; i < 1'500; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(32 + random() % 96);
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(speedscope_format(), bytes);
    EXPECT_TRUE(profile ? write_bytes(speedscope_format(), *profile, ".json").has_value() : !profile.error().message.empty());
  }
}

}  // namespace
}  // namespace cprof::format
