#include "format/chrome/chrome.h"

#include <fmt/format.h>

#include <map>
#include <random>

#include "format/folded/folded.h"
#include "format/pftrace/pftrace.h"
#include "format/test_profiles.h"
#include "timeline/timeline.h"

namespace cprof::format {
namespace {

using namespace testing;
using profile::TrackId;

Profile read_ok(std::string_view text) {
  auto profile = read_bytes(chrome_format(), text);
  EXPECT_TRUE(profile) << (profile ? "" : profile.error().message);
  return profile ? std::move(*profile) : Profile{};
}

std::string refusal(std::string_view text) {
  auto profile = read_bytes(chrome_format(), text);
  return profile ? "read" : profile.error().message;
}

// "name start+duration depth lane [args]", in ns, one slice a line.
std::string slices_of(const Profile& p) {
  std::string out;
  for (const auto& s : p.slices) {
    out += fmt::format("{} {}+{} {}", p.text(s.name), s.start_ns, s.duration_ns, s.depth);
    if (s.track.valid()) out += fmt::format(" {}", p.text(p.tracks[s.track.index()].name));
    if (s.is_open) out += " open";
    for (const auto& l : p.labels_of(s.labels))
      out += fmt::format(" {}={}", p.text(l.key), l.is_number ? std::to_string(l.number) : std::string(p.text(l.text)));
    out += "\n";
  }
  return out;
}

std::string events(std::string_view list) { return fmt::format("[{}]", list); }

std::string event(char phase, std::string_view name, std::string_view ts, std::string_view more = "") {
  return fmt::format(R"({{"ph":"{}","pid":1,"tid":1,"ts":{}{}{}}})", phase, ts,
                     name.empty() ? "" : fmt::format(R"(,"name":"{}")", name), more);
}

TEST(Chrome, MoreEndsThanBegins) {
  const Profile p = read_ok(events(event('B', "a", "0") + "," + event('E', "a", "10") + "," + event('E', "a", "11")));
  EXPECT_EQ(slices_of(p), "a 0+10000 0\n");
  EXPECT_EQ(p.diagnostics.count("chrome_unmatched_ends"), 1u);
}

TEST(Chrome, EndsOfAnotherNameAreLeftOut) {
  const Profile p = read_ok(events(event('B', "alpha", "0") + "," + event('B', "beta", "1") + "," + event('E', "gamma", "2") + "," +
                                   event('E', "beta", "9") + "," + event('E', "alpha", "10")));
  EXPECT_EQ(slices_of(p), "alpha 0+10000 0\nbeta 1000+8000 1\n");
  EXPECT_EQ(p.diagnostics.count("chrome_unmatched_ends"), 1u);
  EXPECT_EQ(p.diagnostics.count("chrome_pairs_not_nested"), 0u);
}

TEST(Chrome, BeginAndEndWithOtherArgumentsMatch) {
  const Profile p = read_ok(events(event('B', "a", "0", R"(,"args":{"x":1})") + "," + event('E', "a", "10", R"(,"args":{"y":"z"})")));
  EXPECT_EQ(slices_of(p), "a 0+10000 0 x=1 y=z\n");
}

TEST(Chrome, PairsThatOverlap) {
  const std::string begins = event('B', "Event2", "200") + "," + event('B', "Event3", "280") + ",";
  const Profile named = read_ok(events(begins + event('E', "Event2", "300") + "," + event('E', "Event3", "350")));
  EXPECT_EQ(slices_of(named), "Event2 200000+100000 0\nEvent3 280000+70000 0 overlapping (2)\n");
  ASSERT_EQ(named.diagnostics.count("chrome_pairs_not_nested"), 1u);
  EXPECT_EQ(named.diagnostics.entries().at("chrome_pairs_not_nested").description.substr(0, 17), "1 pair not nested");
  const Profile nameless = read_ok(events(begins + event('E', "", "300") + "," + event('E', "", "350")));
  EXPECT_EQ(slices_of(nameless), "Event2 200000+150000 0\nEvent3 280000+20000 1\n");
  EXPECT_EQ(nameless.diagnostics.count("chrome_pairs_not_nested"), 1u);
}

TEST(Chrome, EndBeforeItsBeginAtOneTime) {
  const Profile p = read_ok(events(event('B', "a", "0") + "," + event('E', "c", "2") + "," + event('B', "c", "2") + "," + event('E', "a", "10")));
  EXPECT_EQ(slices_of(p), "a 0+10000 0\nc 2000+0 1\n");
  EXPECT_EQ(p.diagnostics.count("chrome_unmatched_ends"), 0u);
}

TEST(Chrome, UnsortedFilesAreSorted) {
  const Profile p = read_ok(events(event('E', "b", "9") + "," + event('E', "a", "10") + "," + event('B', "a", "0") + "," + event('B', "b", "1")));
  EXPECT_EQ(slices_of(p), "a 0+10000 0\nb 1000+8000 1\n");
}

TEST(Chrome, OpenSlicesEndWithTheTrace) {
  const Profile p = read_ok(events(event('B', "a", "0") + "," + event('X', "b", "5", R"(,"dur":20)")));
  EXPECT_EQ(slices_of(p), "a 0+25000 0 open\nb 5000+20000 1\n");
}

TEST(Chrome, OnlyZeroDurationsAreSaid) {
  const Profile p = read_ok(events(event('X', "a", "1", R"(,"dur":0)") + "," + event('X', "b", "2", R"(,"dur":0)")));
  EXPECT_EQ(slices_of(p), "a 1000+0 0\nb 2000+0 0\n");
  EXPECT_EQ(p.diagnostics.count("slices_without_duration"), 2u);
  EXPECT_EQ(p.aggregates.size(), 2u);
}

TEST(Chrome, TimesAreMicrosecondsWhateverIsDisplayed) {
  const Profile p = read_ok(R"({"displayTimeUnit":"ns","traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1236,"dur":13837451}]})");
  EXPECT_EQ(slices_of(p), "a 1236000+13837451000 0\n");
}

TEST(Chrome, FractionsAreExact) {
  const Profile p = read_ok(events(event('X', "a", "1700000000000000.123", R"(,"dur":0.001)") + "," +
                                   event('X', "b", "\"1700000000000001.5\"", R"(,"dur":"2.0004")") + "," + event('X', "c", "1.7e15", R"(,"dur":1e-3)")));
  EXPECT_EQ(slices_of(p), "c 1700000000000000000+1 0\na 1700000000000000123+1 0\nb 1700000000000001500+2000 0\n");
}

TEST(Chrome, NegativeDurationsAndTimes) {
  const Profile p = read_ok(events(event('X', "a", "10", R"(,"dur":-877330)") + "," + event('X', "b", "20", R"(,"dur":5)")));
  EXPECT_EQ(slices_of(p), "a 10000+0 0\nb 20000+5000 0\n");
  ASSERT_EQ(p.diagnostics.count("chrome_negative_durations"), 1u);
  EXPECT_EQ(p.diagnostics.entries().at("chrome_negative_durations").severity, Severity::kError) << "said in one line";
  EXPECT_EQ(total(p, "wall"), 5000);
  const Profile early = read_ok(events(event('X', "a", "-5", R"(,"dur":2)") + "," + event('X', "b", "1", R"(,"dur":1)")));
  EXPECT_EQ(slices_of(early), "a 0+2000 0\nb 6000+1000 0\n");
}

TEST(Chrome, WithoutDurationTheThreadDurationElseZero) {
  const Profile p = read_ok(events(event('X', "a", "1", R"(,"tdur":4)") + "," + event('X', "b", "9")));
  EXPECT_EQ(slices_of(p), "a 1000+4000 0\nb 9000+0 0\n");
  EXPECT_EQ(p.diagnostics.count("chrome_no_duration"), 1u);
}

TEST(Chrome, ArraysMayBeOpen) {
  const std::string one = event('X', "a", "1", R"(,"dur":1)");
  for (const std::string& text : {"[" + one, "[" + one + ",", "[" + one + ",\n", "[\n" + one + ",\n]", "[" + one + ",{}]", "[" + one + "]  \n"})
    EXPECT_EQ(slices_of(read_ok(text)), "a 1000+1000 0\n") << text;
  EXPECT_EQ(refusal("[" + one + ",{\"ph\":\"X\",\"ts\":1"), "test-input: the file ends inside an event, at byte 70");
  EXPECT_EQ(refusal("[" + one + ",{\"ph\":\"X"), "test-input: the file ends inside a text, at byte 62");
  EXPECT_EQ(refusal("{\"traceEvents\":[" + one), "test-input: the file ends inside the list of events, at byte 68");
  EXPECT_EQ(refusal("[" + one + "] x"), "test-input: something stands behind the end of the document, at byte 55");
}

TEST(Chrome, WhatHoldsNothingIsRefused) {
  for (std::string_view text : {"[]", "{}", R"({"traceEvents":[]})", R"([{"ph":"M","name":"process_name","pid":1,"args":{"name":"x"}}])",
                                R"([{"ph":"O","ts":1,"pid":1,"tid":1,"name":"x"}])"})
    EXPECT_EQ(refusal(text), "test-input: this trace has no slices, samples, marks or counters") << text;
  constexpr std::string_view kLeftOut = "test-input: this trace has no slices, samples, marks or counters (left out: 1 events without a phase, or "
                                        "without a time within 146 years of 0)";
  for (std::string_view text : {R"(["x"])", R"([{"ph":"X","name":"a","ts":1e30,"dur":5,"pid":1,"tid":1}])", R"([{"ph":"B","name":"a","pid":1,"tid":1}])"})
    EXPECT_EQ(refusal(text), kLeftOut) << text;
  EXPECT_EQ(refusal("12"), "test-input: neither an array nor an object, at byte 2");
}

// Tracers that have nothing but moments with stacks.
TEST(Chrome, MarksWithStacksAreTheSamplesOfATraceOfMarks) {
  const std::string marks = R"({"ph":"i","name":"x","ts":1,"pid":1,"tid":1,"stack":["a","b"]},{"ph":"i","name":"y","ts":2,"pid":1,"tid":1,"stack":["a"]})";
  const Profile alone = read_ok("[" + marks + "]");
  EXPECT_EQ(alone.marks.size(), 2u);
  ASSERT_EQ(alone.samples.size(), 2u);
  ASSERT_EQ(alone.metrics.size(), 1u);
  EXPECT_EQ(alone.text(alone.metrics[0].name), "marks");
  EXPECT_EQ(alone.samples[0].weight, 1);
  const Profile beside = read_ok("[" + marks + "," + event('X', "s", "1", R"(,"dur":5)") + "]");
  EXPECT_TRUE(beside.samples.empty());
  EXPECT_EQ(total(beside, "wall"), 5000);
  EXPECT_EQ(beside.diagnostics.count("chrome_stacks_left_out"), 2u);
}

TEST(Chrome, NestedMetadataAndLongTextsComeFirst) {
  const std::string text = R"({"metadata":{"a":{"b":[1,{"c":")" + std::string(2 << 20, 'x') + R"("}]}},"otherData":{"version":"7"},"traceEvents":[)" +
                           event('X', "a", "1", R"(,"dur":1)") + "]}   \n";
  EXPECT_TRUE(sniff_chrome(as_span(std::string_view(text).substr(0, 65536))));
  const Profile p = read_ok(text);
  EXPECT_EQ(slices_of(p), "a 1000+1000 0\n");
  EXPECT_EQ(p.run.comments, std::vector<std::string>{"version: 7"});
}

TEST(Chrome, ProcessesAndThreadsByNumberOrText) {
  const Profile p = read_ok(R"([{"ph":"M","name":"process_name","pid":7,"args":{"name":"server"}},
    {"ph":"M","name":"thread_name","pid":"7","tid":"8","args":{"name":"io"}},
    {"ph":"X","name":"a","ts":1,"dur":1,"pid":7,"tid":8},{"ph":"X","name":"b","ts":1,"dur":1,"pid":"gpu","tid":"ring 0"},
    {"ph":"X","name":"c","ts":1,"dur":1,"pid":7,"tid":140012345678901},{"ph":"X","name":"d","ts":1,"dur":1,"pid":7}])");
  std::map<std::string, std::string> where;
  for (const auto& s : p.slices) {
    const auto& thread = p.threads[s.thread.index()];
    const auto& process = p.processes[thread.process.index()];
    where[std::string(p.text(s.name))] = fmt::format("{} {} {} {}", process.pid, p.text(process.name), thread.tid, p.text(thread.name));
  }
  EXPECT_EQ(where["a"], "7 server 8 io");
  EXPECT_EQ(where["b"], "9 gpu 10 ring 0");
  EXPECT_EQ(where["c"], "7 server 11 140012345678901");
  EXPECT_EQ(where["d"], "7 server 7 ");
}

TEST(Chrome, CountersOfEachSeries) {
  const Profile p = read_ok(R"([{"ph":"C","name":"heap","pid":1,"ts":1,"args":{"used":10,"free":2.5}},
    {"ph":"C","name":"load","pid":1,"ts":3,"args":{"value":"0.5"}},{"ph":"C","name":"load","pid":1,"ts":2,"args":{"value":1}}])");
  std::string out;
  for (const auto& c : p.counters) out += fmt::format("{} {} {}\n", p.text(p.tracks[c.track.index()].name), c.time_ns, c.value);
  EXPECT_EQ(out, "heap used 1000 10\nheap free 1000 2.5\nload 2000 1\nload 3000 0.5\n");
}

TEST(Chrome, MarksOfThreadProcessAndAll) {
  const Profile p = read_ok(events(event('i', "t", "1") + "," + event('i', "p", "2", R"(,"s":"p")") + "," + event('I', "g", "3", R"(,"s":"g")")));
  ASSERT_EQ(p.marks.size(), 3u);
  EXPECT_TRUE(p.marks[0].thread.valid());
  EXPECT_TRUE(p.tracks[p.marks[1].track.index()].process.valid());
  EXPECT_FALSE(p.tracks[p.marks[2].track.index()].process.valid());
}

TEST(Chrome, AsynchronousWorkGetsTracks) {
  auto async = [](char phase, std::string_view name, std::string_view id, int ts) {
    return event(phase, name, std::to_string(ts), fmt::format(R"(,"cat":"net","id":"{}")", id));
  };
  const Profile p = read_ok(events(async('b', "job", "1", 0) + "," + async('b', "job", "2", 5) + "," + async('b', "step", "1", 2) + "," +
                                   async('n', "tick", "1", 3) + "," + async('e', "step", "1", 4) + "," + async('e', "job", "1", 10) + "," +
                                   async('e', "job", "2", 15) + "," + async('b', "job", "3", 20) + "," + async('e', "job", "3", 21)));
  EXPECT_EQ(slices_of(p), "job 0+10000 0 job\nstep 2000+2000 1 job\njob 20000+1000 0 job\njob 5000+10000 0 job\n");
  std::map<uint64_t, uint32_t> track_of_start;
  for (const auto& s : p.slices) track_of_start[s.start_ns] = s.track.value;
  EXPECT_NE(track_of_start[0], track_of_start[5000]);
  EXPECT_EQ(track_of_start[0], track_of_start[20000]);
  ASSERT_EQ(p.marks.size(), 1u);
  EXPECT_EQ(p.marks[0].track.value, track_of_start[0]);
}

TEST(Chrome, OldAsynchronousPhases) {
  auto old = [](char phase, int ts) { return event(phase, "load", std::to_string(ts), R"(,"cat":"c","id":"0x1")"); };
  const Profile p = read_ok(events(old('S', 1) + "," + old('T', 2) + "," + old('F', 4)));
  EXPECT_EQ(slices_of(p), "load 1000+3000 0 load\n");
  EXPECT_EQ(p.marks.size(), 1u);
}

constexpr std::string_view kFrames = R"("stackFrames":{"1":{"name":"main","category":"/usr/bin/app"},"2":{"name":"work","parent":"1"},
  "3":{"name":"loop","parent":"4"},"4":{"name":"pool","parent":3},"5":{"name":"lost","parent":9}})";

TEST(Chrome, SamplesFindTheirStacks) {
  const Profile p = read_ok(fmt::format(R"({{"traceEvents":[{{"ph":"P","name":"cycles","ts":1,"pid":1,"tid":1,"sf":2}},
    {{"ph":"i","cat":"sample","ts":2,"pid":1,"tid":1,"stack":["main","read"]}},{{"ph":"P","ts":3,"pid":1,"tid":1,"sf":"3"}},
    {{"ph":"P","ts":4,"pid":1,"tid":1,"sf":"5"}}],{},"samples":[{{"cpu":"3","ts":"9","tid":"1","weight":"7","sf":1,"name":""}}]}})", kFrames));
  EXPECT_EQ(dump(p), "[unknown]@0:; samples/count=1 tid=1\n[unknown]@0:; samples/count=1 tid=1\nmain@0:; samples/count=7 tid=1\n"
                     "main@0:;read@0:; samples/count=1 tid=1\nmain@0:;work@0:; cycles/count=1 tid=1\n");
  EXPECT_EQ(p.diagnostics.count("chrome_broken_stacks"), 2u);
  EXPECT_EQ(p.samples.back().cpu, 3u);
}

TEST(Chrome, SniffsOnlyItsOwn) {
  for (std::string_view text : {R"({"traceEvents":[)", R"(  {"displayTimeUnit":"ms","traceEvents":[]})", R"([{"name":"x","ph":"X"}])", R"([ {"pid":1,"ts":0)",
                                R"({"stackFrames":{},"traceEvents":[]})", "[]", " [ ]", R"([null, null,{"name":"x","ph":"X"}])"})
    EXPECT_TRUE(sniff_chrome(as_span(text))) << text;
  for (std::string_view text : {"", "{", "[", "{}", "[null", "[null,", R"({"nodes":[],"startTime":1})", R"({"meta":{"traceEvents":1},"libs":[]})",
                                R"({"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{}})", R"([{"a":1}])", R"(["ph"])",
                                R"({"a":{"traceEvents":[]}})"})
    EXPECT_FALSE(sniff_chrome(as_span(text))) << text;
  const std::string firefox = R"({"meta":{"interval":1,"x":")" + std::string(70'000, 'x');
  EXPECT_FALSE(sniff_chrome(as_span(std::string_view(firefox).substr(0, 65536))));
}

// What stands before the events may have any name, size and depth.
TEST(Chrome, MetadataBeforeTheEvents) {
  const std::string events = R"("traceEvents":[{"ph":"X","name":"b","ts":5,"dur":100,"pid":1,"tid":1}]})";
  const std::string nested = R"({"meta":{"a":{"b":[1,{"c":[]}]}},)", timed = R"({"startTime":"now","head":{},"nodes":[1],)";
  for (const std::string& front : {nested, timed, nested + R"("long":")" + std::string(1'500'000, 'x') + "\",",
                                   R"({"metadata":{"text":")" + std::string(1'500'000, 'x') + "\"},"}) {
    const std::string text = front + events + "  \n \n";
    const FormatInfo* found = find_by_content(as_span(std::string_view(text).substr(0, 65536)));
    EXPECT_EQ(found ? found->name : "none", "chrome") << front.substr(0, 40);
    EXPECT_EQ(slices_of(read_ok(text)), "b 5000+100000 0\n");
  }
}

std::string v8_event(std::string_view name, std::string_view ts, std::string_view data, std::string_view more = "") {
  return fmt::format(R"({{"args":{{"data":{{{}}}}},"ph":"P","name":"{}","cat":"disabled-by-default-v8.cpu_profiler","pid":1,"id":"0x7","ts":{}{}}})",
                     data, name, ts, more.empty() ? R"(,"tid":2)" : more);
}

constexpr std::string_view kV8Nodes = R"j("nodes":[{"id":1,"callFrame":{"functionName":"(root)","scriptId":0}},
  {"id":2,"parent":1,"callFrame":{"functionName":"main","url":"a.js","lineNumber":9,"columnNumber":4}}])j";
const std::string kV8Begin = v8_event("Profile", "1000", R"("startTime":77)", R"(,"tid":1)");

TEST(ChromeV8, ChunksAreOneProfileOfTheThreadThatItBeganOn) {
  const std::string first = v8_event("ProfileChunk", "2000", fmt::format(R"("cpuProfile":{{{},"samples":[2,2]}},"timeDeltas":[100,200],"lines":[1,2])", kV8Nodes));
  const std::string second = v8_event("ProfileChunk", "3000",
      R"("cpuProfile":{"nodes":[{"id":3,"parent":2,"callFrame":{"functionName":""}}],"samples":[3,2],"timeDeltas":[50,-20]})");
  for (const std::string& list : {kV8Begin + "," + first + "," + second, second + "," + first + "," + kV8Begin}) {
    const Profile p = read_ok(events(list));
    EXPECT_EQ(p.samples.size(), 4u);
    int64_t total = 0;
    for (const auto& sample : p.samples) total += sample.weight;
    EXPECT_EQ(total, 200'000 + 30'000 + 20'000 + 20'000);
    EXPECT_EQ(p.samples.front().time_ns, 1'100'000u) << "from the event, not from startTime, which is of another clock";
    EXPECT_EQ(p.threads[p.samples.front().thread.index()].tid, 1);
    EXPECT_EQ(p.text(p.run.default_metric), "duration");
    EXPECT_TRUE(p.diagnostics.entries().empty());
    EXPECT_NE(dump(p).find("main@10:a.js;(anonymous)@0:; duration/nanoseconds=20000 tid=1"), std::string::npos) << dump(p);
  }
}

TEST(ChromeV8, SamplesBesideSlices) {
  const Profile p = read_ok(events(event('X', "task", "1000", R"(,"dur":900)") + "," + kV8Begin + "," +
      v8_event("ProfileChunk", "2000", fmt::format(R"("cpuProfile":{{{},"samples":[2]}},"timeDeltas":[100],"endTime":9)", kV8Nodes))));
  EXPECT_EQ(slices_of(p), "task 1000000+900000 0\n");
  EXPECT_EQ(p.samples.size(), 1u);
  EXPECT_EQ(p.metrics.size(), 1u) << "slices do not count beside samples";
}

TEST(ChromeV8, AWholeProfileInOneEvent) {
  const std::string whole = R"j("cpuProfile":{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},
      {"id":2,"callFrame":{"functionName":"f","url":""}}],"startTime":500,"endTime":900,"samples":[2,1],"timeDeltas":[100,200]})j";
  const std::string text = fmt::format(R"([{{"ph":"I","name":"CpuProfile","pid":1,"tid":4,"ts":9000,"args":{{"data":{{{}}}}}}}])", whole);
  const Profile p = read_ok(text);
  ASSERT_EQ(p.samples.size(), 2u);
  EXPECT_EQ(p.samples[0].time_ns, 600'000u);
  EXPECT_EQ(p.samples[1].weight, 100'000);
  EXPECT_FALSE(p.samples[1].site.valid()) << "the root alone is no stack";
  EXPECT_TRUE(p.marks.empty());
}

// Two profiles with the same node numbers: other ids, or the same id in another process.
TEST(ChromeV8, ProfilesStayApart) {
  std::string list;
  for (int pid : {1, 2})
    list += fmt::format(R"({{"ph":"P","name":"ProfileChunk","pid":{0},"tid":{0},"id":"0x1","ts":100,"args":{{"data":{{"cpuProfile":{{"nodes":[{{"id":1,"callFrame":{{"functionName":"f{0}"}}}}],"samples":[1,1]}},"timeDeltas":[10,10]}}}}}},)", pid);
  const Profile p = read_ok(events(list.substr(0, list.size() - 1)));
  EXPECT_EQ(dump(p), "f1@0:; duration/nanoseconds=10000 tid=1\nf1@0:; duration/nanoseconds=10000 tid=1\n"
                     "f2@0:; duration/nanoseconds=10000 tid=2\nf2@0:; duration/nanoseconds=10000 tid=2\n");
  EXPECT_EQ(p.samples[0].time_ns, 90'000u) << "without its beginning a chunk ends when it was written";
}

TEST(ChromeV8, NonsenseIsCounted) {
  const auto losses = [](std::string_view data) {
    const Profile p = read_ok(events(kV8Begin + "," + event('i', "mark", "1") + "," + v8_event("ProfileChunk", "2000", data)));
    return fmt::format("{} samples, {} malformed, {} broken", p.samples.size(), p.diagnostics.count("chrome_events_malformed"),
                       p.diagnostics.count("chrome_broken_stacks"));
  };
  EXPECT_EQ(losses(fmt::format(R"("cpuProfile":{{{},"samples":[2,9]}},"timeDeltas":[1,1])", kV8Nodes)), "2 samples, 0 malformed, 1 broken");
  EXPECT_EQ(losses(fmt::format(R"("cpuProfile":{{{},"samples":[2,2]}},"timeDeltas":[1])", kV8Nodes)), "2 samples, 1 malformed, 0 broken");
  EXPECT_EQ(losses(fmt::format(R"("cpuProfile":{{{},"samples":[2,2]}},"timeDeltas":[1,9223372036854775807])", kV8Nodes)), "1 samples, 1 malformed, 0 broken");
  EXPECT_EQ(losses(R"("cpuProfile":{"nodes":[{"id":1,"parent":1,"callFrame":{}},{"id":1}],"samples":[1]},"timeDeltas":[1])"), "1 samples, 1 malformed, 1 broken");
  EXPECT_EQ(losses(R"("cpuProfile":{"nodes":7,"samples":{"a":[1]},"timeDeltas":"x"})"), "0 samples, 0 malformed, 0 broken");
  EXPECT_EQ(losses(R"("cpuProfile":[1,2])"), "0 samples, 0 malformed, 0 broken");
  EXPECT_EQ(refusal(R"([{"ph":"P","args":{"data":{"cpuProfile":{"nodes":[{"id":1,)"), "test-input: the file ends inside an event, at byte 58");
}

std::string written(const Profile& profile) {
  auto bytes = write_bytes(chrome_format(), profile, ".trace.json");
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes.value_or("");
}

std::string text_of(const FormatInfo& format, const Profile& profile, std::string_view ending) {
  WriteOptions options;
  options.by = GroupBy::kThread;
  return write_bytes(format, profile, ending, options).value_or("");
}

TEST(Chrome, RecordingsComeBack) {
  const Profile profile = example_recording();
  const std::string bytes = written(profile);
  EXPECT_TRUE(sniff_chrome(as_span(bytes)));
  const Profile again = read_ok(bytes);
  EXPECT_EQ(dump(again), dump(profile));
  EXPECT_TRUE(again.slices.empty());
  EXPECT_EQ(text_of(folded_format(), again, ".folded"), text_of(folded_format(), profile, ".folded"));
  EXPECT_EQ(written(read_ok(written(again))), written(again));  // frames are numbered by their first use
  EXPECT_EQ(again.run.sampling_interval_ns, profile.run.sampling_interval_ns);
  EXPECT_EQ(again.metrics[0].is_time, true);
}

Profile with_everything() {
  Recording r;
  Profile& p = r.builder.profile();
  auto process = p.threads[r.main.index()].process;
  std::vector<profile::Label> labels = {{.key = r.builder.intern("n"), .number = 7, .is_number = true}, {.key = r.builder.intern("s"), .text = r.builder.intern("x\"y")}};
  p.tracks.push_back({.name = r.builder.intern("jobs"), .process = process});
  p.tracks.push_back({.name = r.builder.intern("heap"), .unit = r.builder.intern("bytes"), .process = process});
  p.slices.push_back({.thread = r.main, .name = r.builder.intern("f\x01\n\"\\"), .start_ns = 1001, .duration_ns = 5000, .labels = r.builder.label_set(labels)});
  p.slices.push_back({.thread = r.main, .name = r.builder.intern("my::operator\"\" _kg(long double)"), .category = r.builder.intern("own"), .start_ns = 2000, .duration_ns = 1});
  p.slices.push_back({.thread = r.worker, .name = r.builder.intern("open"), .start_ns = 10, .duration_ns = 99'990, .is_open = true});
  p.slices.push_back({.name = r.builder.intern("one"), .start_ns = 0, .duration_ns = 10'000, .track = TrackId(size_t{0})});
  p.slices.push_back({.name = r.builder.intern("inner"), .start_ns = 2, .duration_ns = 8, .track = TrackId(size_t{0})});
  p.slices.push_back({.name = r.builder.intern("two"), .start_ns = 5000, .duration_ns = 10'000, .track = TrackId(size_t{0})});
  p.marks.push_back({.thread = r.tool, .name = r.builder.intern("mark"), .category = r.builder.intern("m"), .time_ns = 77});
  p.counters.push_back({.track = TrackId(size_t{1}), .time_ns = 50, .value = 1.25});
  p.counters.push_back({.track = TrackId(size_t{1}), .time_ns = 100'000, .value = 3});
  return r.builder.take();
}

TEST(Chrome, SlicesMarksAndCountersComeBack) {
  const Profile profile = with_everything();
  const Profile again = read_ok(written(profile));
  const std::string text = slices_of(again);
  EXPECT_NE(text.find("f\x01\n\"\\ 1001+5000 0 n=7 s=x\"y\n"), std::string::npos) << text;
  EXPECT_NE(text.find("my::operator\"\" _kg(long double) 2000+1 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("open 10+99990 0 open\n"), std::string::npos) << text;
  EXPECT_NE(text.find("one 0+10000 0 jobs\n"), std::string::npos) << text;
  EXPECT_NE(text.find("inner 2+8 1 jobs\n"), std::string::npos) << text;
  EXPECT_NE(text.find("two 5000+10000 0 jobs\n"), std::string::npos) << text;
  ASSERT_EQ(again.marks.size(), 1u);
  EXPECT_EQ(again.threads[again.marks[0].thread.index()].tid, 20);
  ASSERT_EQ(again.counters.size(), 2u);
  EXPECT_EQ(again.counters[0].value, 1.25);
  EXPECT_EQ(again.text(again.tracks[again.counters[0].track.index()].unit), "bytes");
  EXPECT_EQ(written(again), written(read_ok(written(again))));
}

TEST(Chrome, TimesHaveThreeDecimals) {
  const std::string bytes = written(with_everything());
  EXPECT_NE(bytes.find(R"("ts":1.001,"dur":5.000)"), std::string::npos);
  EXPECT_NE(bytes.find(R"("name":"f\u0001\n\"\\","cat":"function")"), std::string::npos) << bytes;
}

TEST(Chrome, WaitsComeBack) {
  Recording r;
  Profile& p = r.builder.profile();
  r.builder.add_metric("offcpu", "nanoseconds");
  auto f = r.code(0x10, {r.line("f")});
  r.sample(r.main, 0, {f});
  r.sample(r.main, 40, {f});
  p.off_cpu.push_back({.thread = r.main, .start_ns = Recording::kStart + 5'000'000, .end_ns = Recording::kStart + 39'000'000,
                       .woken_ns = Recording::kStart + 38'000'000, .wait_class = profile::WaitClass::kLock,
                       .site = r.builder.stack(std::vector{f, r.in_kernel(5, "mutex_lock", false)}), .end = profile::StackEnd::kComplete,
                       .waker = r.worker, .cpu = 1, .is_guessed = true});
  p.run.has_off_cpu = true;
  const Profile profile = r.builder.take();
  const Profile again = read_ok(written(profile));
  ASSERT_EQ(again.off_cpu.size(), 1u);
  const auto& wait = again.off_cpu[0];
  EXPECT_EQ(wait.start_ns, profile.off_cpu[0].start_ns);
  EXPECT_EQ(wait.end_ns, profile.off_cpu[0].end_ns);
  EXPECT_EQ(wait.woken_ns, profile.off_cpu[0].woken_ns);
  EXPECT_EQ(wait.wait_class, profile::WaitClass::kLock);
  EXPECT_EQ(again.threads[wait.waker.index()].tid, 11);
  EXPECT_TRUE(wait.is_guessed);
  EXPECT_EQ(written(again), written(profile));
}

// A profile of slices only goes through every writer.
TEST(Chrome, SlicesGoEverywhere) {
  const Profile p = read_ok(R"([{"ph":"M","name":"process_name","pid":1,"args":{"name":"app"}},
    {"ph":"X","name":"main","ts":0,"dur":10,"pid":1,"tid":1},{"ph":"X","name":"work","ts":2,"dur":3,"pid":1,"tid":1}])");
  EXPECT_EQ(write_bytes(folded_format(), p, ".folded").value_or(""), "app;main 7000\napp;main;work 3000\n");
  for (const FormatInfo& info : all_formats()) {
    if (!info.write) continue;
    auto bytes = write_bytes(info, p, info.extensions[0]);
    EXPECT_TRUE(bytes) << info.name;
  }
  WriteOptions wall;
  wall.weight = Weight::kWall;
  EXPECT_EQ(write_bytes(folded_format(), p, ".folded", wall).value_or(""), "app;main 7\napp;main;work 3\n");
}

TEST(Chrome, UntimedProfilesAreRefused) {
  ProfileBuilder builder;
  builder.add_metric("samples", "count");
  auto none = write_bytes(chrome_format(), builder.take(), ".trace.json");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no times"), std::string::npos);
}

// Random events, cut and damaged: read or refused, never more.
TEST(Chrome, DamagedFilesAreReadOrRefused) {
  const std::string good = written(with_everything()) ;
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string bad = good.substr(0, random() % 4 ? good.size() : random() % good.size());
    for (unsigned n = random() % 4; n > 0 && !bad.empty(); --n) bad[random() % bad.size()] = static_cast<char>(" \"{}[]:,0\\x"[random() % 11]);
    auto profile = read_bytes(chrome_format(), bad);
    EXPECT_TRUE(profile || profile.error().message.starts_with("test-input: "));
  }
}

}  // namespace
}  // namespace cprof::format
