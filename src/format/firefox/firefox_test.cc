#include "format/firefox/firefox.h"

#include <random>

#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;

// A thread with its own tables, as versions up to 59 have them: main > f with g inlined in it, and kernel code.
constexpr std::string_view kTables = R"json(
  "stackTable":{"frame":[0,1,2,3],"prefix":[null,0,1,0],"length":4},
  "frameTable":{"address":[16,32,32,4096],"inlineDepth":[0,0,1,0],"func":[0,1,2,3],"category":[0,0,0,1],
                "line":[1,7,9,null],"column":[null,null,2,null],"length":4},
  "funcTable":{"name":[0,1,2,5],"isJS":[false,false,false,false],"resource":[0,0,0,1],"fileName":[3,3,4,null],
               "lineNumber":[null,5,8,null],"length":4},
  "resourceTable":{"lib":[0,1],"name":[0,0],"length":2},
  "stringArray":["main","f","g","a.cc","g.h","0x1000","Load","text value"])json";

std::string file(std::string_view meta, std::string_view thread, std::string_view rest = "") {
  return R"json({"meta":{"interval":1,"startTime":1000.5,"categories":[{"name":"User"},{"name":"Kernel"}],
    "markerSchema":[{"data":[{"key":"word","format":"unique-string"}],"name":"Own"}],"product":"app",
    "preprocessedProfileVersion":48)json" + std::string(meta) +
         R"json(},"libs":[{"name":"app","path":"/bin/app","breakpadId":"33221100554477668899AABBCCDDEEFF0","codeId":null},
                          {"name":"kernel","path":"[kernel.kallsyms]","codeId":"ABCD"}],
    "threads":[{"name":"Main","processName":"app","pid":"12","tid":12,"isMainThread":true,"registerTime":0,"unregisterTime":null,)json" +
         std::string(kTables) + "," + std::string(thread) + "}]" + std::string(rest) + "}";
}

TEST(Firefox, SamplesOfAThread) {
  auto profile = read_bytes(firefox_format(), file("", R"("samples":{"stack":[2,2,3,null],"time":[1,2.5,3,4],"weight":null,"weightType":"samples"})"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(dump(*profile),
            "[unknown]@0:; samples/count=1 tid=12\nmain@1:a.cc;[kernel.kallsyms+0x1000]@0:; samples/count=1 tid=12\n"
            "main@1:a.cc;f@7:a.cc;g@9:g.h; samples/count=1 tid=12\nmain@1:a.cc;f@7:a.cc;g@9:g.h; samples/count=1 tid=12\n");
  EXPECT_EQ(profile->samples[1].time_ns, 2'500'000u);
  EXPECT_EQ(profile->run.start_realtime_ns, 1'000'500'000u);
  EXPECT_EQ(profile->run.sampling_interval_ns, 1'000'000u);
  const auto site = profile->samples[0].site;
  const auto& inlined = profile->locations[profile->sites[site.index()].location.index()];
  EXPECT_EQ(inlined.line_count, 2u);
  EXPECT_EQ(inlined.file_address, 32u);
  EXPECT_EQ(profile->text(profile->mappings[inlined.mapping.index()].build_id), "00112233445566778899aabbccddeeff");
  const auto& kernel = profile->locations[profile->sites[profile->samples[2].site.index()].location.index()];
  EXPECT_EQ(kernel.kind, FrameKind::kKernel);
  EXPECT_EQ(profile->text(profile->mappings[kernel.mapping.index()].build_id), "abcd");
}

TEST(Firefox, DeltasWeightsAndCpuTime) {
  auto deltas = read_bytes(firefox_format(), file("", R"("samples":{"stack":[0,0,0],"timeDeltas":[5,0.25,1],"weight":[2,1,3]})"));
  ASSERT_TRUE(deltas) << deltas.error().message;
  EXPECT_EQ(deltas->samples[2].time_ns, 6'250'000u);
  EXPECT_EQ(deltas->samples[2].weight, 3);
  auto cpu = read_bytes(firefox_format(), file(R"(,"sampleUnits":{"time":"ms","threadCPUDelta":"µs"})",
                                               R"("samples":{"stack":[0,0],"time":[1,2],"threadCPUDelta":[null,250.5],"weight":[1,1]})"));
  ASSERT_TRUE(cpu) << cpu.error().message;
  EXPECT_EQ(dump(*cpu), "main@1:a.cc; cpu/nanoseconds=0 tid=12\nmain@1:a.cc; cpu/nanoseconds=250500 tid=12\n");
  EXPECT_TRUE(cpu->metrics[0].is_time);
  EXPECT_EQ(read_dump(firefox_format(), file("", R"("samples":{"stack":[0],"time":[1],"weight":[1.5],"weightType":"tracing-ms"})")),
            "main@1:a.cc; wall/nanoseconds=1500000 tid=12\n");
  EXPECT_EQ(read_dump(firefox_format(), file("", R"("samples":{"stack":[0],"time":[1],"weight":[-64],"weightType":"bytes"})")),
            "main@1:a.cc; bytes/bytes=-64 tid=12\n");
  EXPECT_EQ(read_dump(firefox_format(), file(R"(,"sampleUnits":{"time":"bytes"})", R"("samples":{"stack":[0],"time":[1],"weight":[64],"weightType":"bytes"})")),
            "main@1:a.cc; bytes/bytes=64 tid=12\n");
}

TEST(Firefox, UnsortedSamplesAreSorted) {
  auto profile = read_bytes(firefox_format(), file("", R"("samples":{"stack":[0,1,2],"time":[5,3,4]})"));
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->samples.size(), 3u);
  EXPECT_EQ(profile->samples[0].time_ns, 3'000'000u);
  EXPECT_EQ(profile->samples[2].time_ns, 5'000'000u);
}

// Tables of all threads, texts of all threads, offsets instead of prefixes, sources, libraries of frames: version 70.
TEST(Firefox, SharedTablesInAnyOrder) {
  EXPECT_EQ(read_dump(firefox_format(), R"json({"threads":[{"samples":{"stack":[1],"time":[2]},"name":"T","pid":"7","tid":"8"}],
      "shared":{"stringArray":["main","f","x.rs"],"sources":{"filename":[2],"length":1},
        "stackTable":{"frame":[0,1],"prefixOffset":[0,1]},"frameTable":{"func":[0,1],"address":[-1,64],"lib":[-1,0],"line":[null,3],"inlineDepth":[0,0]},
        "funcTable":{"name":[0,1],"source":[null,0],"resource":[-1,-1],"lineNumber":[null,2]},"resourceTable":{"name":[]}},
      "libs":[{"name":"l","path":"/l.so"}],"meta":{"interval":1,"preprocessedProfileVersion":70}})json"),
            "main@0:;f@3:x.rs; samples/count=1 tid=8\n");
}

TEST(Firefox, MarkersAreSlicesAndMarks) {
  auto profile = read_bytes(firefox_format(), file("", R"json("samples":{"stack":[],"time":[]},"markers":{"name":[6,6,6,6,6,6],
      "startTime":[1,2,3,1.5,10,null],"endTime":[5,3,null,6,null,12],"phase":[1,1,0,1,2,3],"category":[0,0,1,0,0,0],
      "data":[{"type":"Own","word":7,"count":3,"ratio":0.5,"on":true,"deep":{"a":[1]}},null,null,null,null,null],"length":6})json"));
  ASSERT_TRUE(profile) << profile.error().message;
  ASSERT_EQ(profile->slices.size(), 4u);
  EXPECT_EQ(profile->tracks.size(), 2u);  // 1.5 to 6 overlaps 1 to 5
  EXPECT_EQ(profile->slices[0].duration_ns, 4'000'000u);
  EXPECT_EQ(profile->slices[2].depth, 1u);  // 2 to 3 lies in 1 to 5
  EXPECT_EQ(profile->slices[3].start_ns, 10'000'000u);
  EXPECT_EQ(profile->slices[3].duration_ns, 2'000'000u);
  ASSERT_EQ(profile->marks.size(), 1u);
  EXPECT_EQ(profile->marks[0].time_ns, 3'000'000u);
  EXPECT_EQ(profile->text(profile->marks[0].category), "Kernel");
  const auto [first, count] = profile->label_sets[profile->slices[0].labels.index()];
  std::string labels;
  for (uint32_t i = first; i < first + count; ++i) {
    const auto& l = profile->labels[i];
    labels += std::string(profile->text(l.key)) + "=" + (l.is_number ? std::to_string(l.number) : std::string(profile->text(l.text))) + " ";
  }
  EXPECT_EQ(labels, "type=Own word=text value count=3 ratio=0.5 on=true ");
}

TEST(Firefox, OldMarkersAndCounters) {
  auto profile = read_bytes(firefox_format(), file("", R"json("samples":{"stack":[],"time":[]},"markers":{"name":[6,6,6,6],"time":[1,2,3,4],
      "data":[{"type":"x","startTime":1,"endTime":9},{"type":"tracing","interval":"start"},{"type":"tracing","interval":"end"},null]})json",
      R"json(,"counters":[{"name":"malloc","category":"Memory","pid":"12","sampleGroups":[{"id":0,"samples":{"time":[1,2],"count":[10,-4]}}]},
                      {"name":"power","category":"power","pid":"12","samples":{"timeDeltas":[1,1],"count":[0.5,0.25]}}])json"));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(profile->slices.size(), 2u);
  EXPECT_EQ(profile->marks.size(), 1u);
  ASSERT_EQ(profile->counters.size(), 4u);
  EXPECT_EQ(profile->counters[1].value, 6);
  EXPECT_EQ(profile->counters[3].value, 0.25);
  EXPECT_EQ(profile->counters[3].time_ns, 2'000'000u);
}

TEST(Firefox, ErrorsSayWhat) {
  EXPECT_EQ(read_dump(firefox_format(), file("", R"("samples":{"stack":[9],"time":[1]})")), "test-input: thread 0: stack 9 is not in the table of 4");
  EXPECT_EQ(read_dump(firefox_format(), file("", R"("samples":{"stack":[0],"time":[1,2]})")), "test-input: thread 0: 1 samples and 2 times of them");
  EXPECT_EQ(read_dump(firefox_format(), R"({"meta":{"interval":1,"stackwalk":1},"threads":[{"samples":{"schema":{"stack":0},"data":[[0]]}}]})"),
            "test-input: not supported: a Gecko profile that was not processed; profiler.firefox.com opens and saves it");
  EXPECT_EQ(read_dump(firefox_format(), R"({"threads":[{"lwp":3,"frames":[]}],"meta":{}})"),
            "test-input: nothing of the Firefox Profiler in it (meta, shared, threads with a stackTable), nor of a Chrome trace, "
            "speedscope or .cpuprofile");
  EXPECT_EQ(read_dump(firefox_format(), "[]"), "test-input: byte 0: an array where the object of a Firefox Profiler file should be");
  EXPECT_EQ(read_dump(firefox_format(), R"({"meta":{"preprocessedProfileVersion":3},"threads":[]})"), "test-input: no threads");
  EXPECT_EQ(read_dump(firefox_format(), R"({"threads":[{"stackTable":{"frame":[0,0],"prefix":[1,null]}}]})"),
            "test-input: thread 0: stackTable: row 0 comes before its prefix");
  EXPECT_EQ(read_dump(firefox_format(), R"({"threads":[{"stackTable":{"frame":[0],"prefix":[null]},"samples":{"stack":[0],"time":[0]}}]})"),
            "test-input: thread 0: frame 0 has no function");
  EXPECT_TRUE(read_dump(firefox_format(), R"({"threads":[{"stackTable":{"frame":[0.5]}}]})").ends_with("stackTable has 1 frames and 0 prefixes"));
  EXPECT_TRUE(read_dump(firefox_format(), R"({"threads":[{"stackTable":{"frame":["x"]}}]})").ends_with("a text where a column of numbers should be"));
}

TEST(Firefox, RoundTripOfImports) {
  for (std::string_view samples : {R"("samples":{"stack":[2,2,3,null],"time":[1,2.5,3,4],"weight":[1,2,1,1]})",
                                   R"("samples":{"stack":[2,3],"time":[1,2],"weight":[1.5,2.25],"weightType":"tracing-ms"})",
                                   R"("samples":{"stack":[2,3],"time":[1,2],"threadCPUDelta":[10,20]})"}) {
    auto first = read_bytes(firefox_format(), file(R"(,"sampleUnits":{"threadCPUDelta":"ns"})",
        std::string(samples) + R"(,"markers":{"name":[6,6],"startTime":[1,2],"endTime":[5,null],"phase":[1,0],"data":[{"a":1},null]})",
        R"(,"counters":[{"name":"m","category":"Memory","pid":"12","samples":{"time":[1,2],"count":[10,-4]}}])"));
    ASSERT_TRUE(first) << first.error().message;
    auto written = write_bytes(firefox_format(), *first, ".json");
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(*written, *write_bytes(firefox_format(), *first, ".json"));
    EXPECT_EQ(find_by_content(as_span(*written))->name, "firefox");
    EXPECT_EQ(find_by_content(as_span(*write_bytes(firefox_format(), *first, ".json.gz")))->name, "firefox");
    auto again = read_bytes(firefox_format(), *written);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(dump(*again), dump(*first));
    EXPECT_EQ(again->samples[1].time_ns, first->samples[1].time_ns);
    ASSERT_EQ(again->slices.size(), 1u);
    EXPECT_EQ(again->slices[0].duration_ns, 4'000'000u);
    EXPECT_EQ(again->marks.size(), 1u);
    ASSERT_EQ(again->counters.size(), 2u);
    EXPECT_EQ(again->counters[1].value, 6);
  }
}

TEST(Firefox, RecordingOutAndBack) {
  const Profile recording = example_recording();
  auto written = write_bytes(firefox_format(), recording, ".json");
  ASSERT_TRUE(written) << written.error().message;
  auto again = read_bytes(firefox_format(), *written);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(dump(*again), dump(recording));
  EXPECT_EQ(again->samples.size(), recording.samples.size());
  EXPECT_EQ(again->samples[3].time_ns, recording.samples[3].time_ns);
}

TEST(Firefox, UntimedStaysUntimed) {
  profile::ProfileBuilder builder;
  auto metric = builder.add_metric("alloc_space", "bytes");
  profile::Line l{builder.function({.name = builder.intern("f")}), 3};
  auto at = builder.named_location({}, FrameKind::kUser, {&l, 1});
  builder.add_aggregate({.site = builder.stack({&at, 1}), .metric = metric, .value = 4096});
  const Profile first = builder.take();
  auto written = write_bytes(firefox_format(), first, ".json");
  ASSERT_TRUE(written);
  EXPECT_EQ(read_dump(firefox_format(), *written), dump(first));
}

TEST(Firefox, Sniff) {
  EXPECT_TRUE(sniff_firefox(as_span(R"({"libs":[],"threads":[{"stackTable":{"frame":[)")));
  EXPECT_TRUE(sniff_firefox(as_span(R"({"meta":{"interval":1,"startTime":1,"processType":0)")));
  EXPECT_TRUE(sniff_firefox(as_span(R"({"shared":{"stringArray":["a")")));
  EXPECT_FALSE(sniff_firefox(as_span(R"({"meta":{"interval":1},"data":[]})")));
  EXPECT_FALSE(sniff_firefox(as_span(R"({"traceEvents":[],"metadata":{}})")));
  EXPECT_FALSE(sniff_firefox(as_span(R"({"shared":{"frames":[]},"profiles":[]})")));
}

TEST(Firefox, MutatedFilesNeverBreakIt) {
  const std::string good = file(R"(,"sampleUnits":{"threadCPUDelta":"ns"})",
      R"("samples":{"stack":[2,2,3,null],"time":[1,2.5,3,4],"threadCPUDelta":[1,2,3,4]},"markers":{"name":[6,6],"startTime":[1,2],"endTime":[5,null],"phase":[1,0],"data":[{"a":1},null]})",
      R"(,"counters":[{"name":"m","category":"Memory","pid":"12","samples":{"time":[1,2],"count":[10,-4]}}])");
  std::mt19937 random(7);
  for (int i = 0; i < 1'500; ++i) {
    std::string bytes = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(32 + random() % 96);
    if (i % 4 == 0) bytes.resize(random() % (bytes.size() + 1));
    auto profile = read_bytes(firefox_format(), bytes);
    EXPECT_TRUE(profile ? write_bytes(firefox_format(), *profile, ".json").has_value() : !profile.error().message.empty());
  }
}

}  // namespace
}  // namespace cprof::format
