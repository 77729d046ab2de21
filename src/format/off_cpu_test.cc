// Waits in every format that can hold them: the same sums, and our readers get them back.
#include <map>

#include "format/folded/folded.h"
#include "format/pftrace/pftrace.h"
#include "format/pftrace/pftrace_decode_test.h"
#include "format/pprof/pprof.h"
#include "format/test_profiles.h"
#include "format/text/text.h"

namespace cprof::format {
namespace {

using namespace testing;
using profile::WaitClass;

// The main thread works for 2 ms, waits 50 ms for a lock that the worker holds, 2 of them runnable, and works again. The
// worker waits 30 ms without a known stack, the tool twice 4 ms.
Profile waiting_recording() {
  Recording r;
  Profile& p = r.builder.profile();
  p.run.has_off_cpu = true;
  r.builder.add_metric(profile::kOffCpuMetric, "nanoseconds");
  LocationId start = r.code(0x10, {r.line("main", 100, "main.cc")});
  LocationId work = r.code(0x20, {r.line("work", 7, "main.cc")}, false);
  LocationId lock = r.code(0x30, {r.line("lock", 9, "main.cc")});
  LocationId entry = r.in_kernel(0, "do_futex", true);
  LocationId leaf = r.in_kernel(0x100, "schedule", false);
  for (uint64_t ms : {0, 1, 53, 54}) r.sample(r.main, ms, {start, work});
  auto at = [](uint64_t ms) { return Recording::kStart + ms * Recording::kMs; };
  const auto site = r.builder.stack(std::vector{start, lock, entry, leaf});
  const auto pause = r.builder.stack(std::vector{start});
  p.off_cpu = {{.thread = r.main, .start_ns = at(2), .end_ns = at(52), .woken_ns = at(50), .wait_class = WaitClass::kFutex,
                .site = site, .end = profile::StackEnd::kComplete, .waker = r.worker, .cpu = 1},
               {.thread = r.worker, .start_ns = at(10), .end_ns = at(40), .wait_class = WaitClass::kOther},
               {.thread = r.tool, .start_ns = at(1), .end_ns = at(5), .wait_class = WaitClass::kSleep, .site = pause,
                .end = profile::StackEnd::kComplete},
               {.thread = r.tool, .start_ns = at(6), .end_ns = at(10), .wait_class = WaitClass::kSleep, .site = pause,
                .end = profile::StackEnd::kComplete, .is_borrowed = true}};
  p.on_cpu = {{.thread = r.main, .start_ns = at(0), .end_ns = at(2)}, {.thread = r.main, .start_ns = at(52), .end_ns = at(56)}};
  Profile profile = r.builder.take();
  auto valid = profile::validate(profile);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  return profile;
}

std::string folded(const Profile& profile, Weight weight) {
  WriteOptions options;
  options.weight = weight;
  auto text = write_bytes(folded_format(), profile, ".folded", options);
  return text ? *text : text.error().message;
}

const std::string kOffCpu =
    "app;[unknown] 30000\n"
    "app;main;lock;do_futex_[k];schedule_[k] 50000\n"
    "tool;main 8000\n";

TEST(OffCpuFormats, FoldedInMicroseconds) { EXPECT_EQ(folded(waiting_recording(), Weight::kOffCpu), kOffCpu); }

TEST(OffCpuFormats, SamplesDoNotCountWaits) {
  EXPECT_EQ(folded(waiting_recording(), Weight::kSamples), "app;main;work 4\n");
}

// The lock's frames fill the gap; back on the CPU its user part goes on until the next sample.
TEST(OffCpuFormats, WallHoldsTheWaits) {
  EXPECT_EQ(folded(waiting_recording(), Weight::kWall),
            "app;main;lock 1000\n"
            "app;main;lock;do_futex_[k];schedule_[k] 50000\n"
            "app;main;work 4000\n"
            "tool;main 10000\n");
}

TEST(OffCpuFormats, PprofHasAFourthValueThatReadsBack) {
  auto bytes = write_bytes(pprof_format(), waiting_recording(), ".pb");
  ASSERT_TRUE(bytes);
  auto back = read_bytes(pprof_format(), *bytes);
  ASSERT_TRUE(back) << back.error().message;
  std::vector<std::string> types;
  for (const auto& m : back->metrics) types.push_back(std::string(back->text(m.name)) + "/" + std::string(back->text(m.unit)));
  EXPECT_EQ(types, (std::vector<std::string>{"samples/count", "cpu/nanoseconds", "wall/nanoseconds", "offcpu/nanoseconds"}));
  EXPECT_EQ(total(*back, "samples"), 4);
  EXPECT_EQ(total(*back, "offcpu"), 88 * int64_t{Recording::kMs});
  EXPECT_EQ(total(*back, "wall"), 65 * int64_t{Recording::kMs});
  EXPECT_EQ(folded(*back, Weight::kOffCpu), kOffCpu);
}

TEST(OffCpuFormats, TextHasAParagraphForEachWaitThatReadsBack) {
  auto text = write_bytes(text_format(), waiting_recording(), ".txt");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("app 10/10 [001] 1.002000:   50000000 offcpu: \n\tffffffff81000110 schedule ([kernel])\n"), std::string::npos)
      << *text;
  EXPECT_LT(text->find("1.001000:    1000000 cpu-clock"), text->find("1.002000:   50000000 offcpu")) << "by time";
  auto back = read_bytes(text_format(), *text);
  ASSERT_TRUE(back);
  EXPECT_EQ(folded(*back, Weight::kOffCpu), kOffCpu);
  EXPECT_EQ(folded(*back, Weight::kSamples), "app;main;work 4\n");
  EXPECT_EQ(write_bytes(text_format(), *back, ".txt").value_or(""), *text);
}

TEST(OffCpuFormats, TraceHasALaneOfStates) {
  TraceDecoder trace(write_bytes(pftrace_format(), waiting_recording(), ".pftrace").value_or(""));
  EXPECT_TRUE(trace.errors.empty()) << fmt::format("{}", fmt::join(trace.errors, "\n"));
  std::map<std::string, std::vector<std::string>> lanes;
  for (const DecodedSlice& slice : trace.slices) {
    const DecodedTrack& track = trace.tracks[slice.track];
    if (track.name != "state") continue;
    const uint64_t ms = (slice.start_ns - Recording::kStart) / Recording::kMs, end = (slice.end_ns - Recording::kStart) / Recording::kMs;
    lanes[trace.tracks[track.parent].name].push_back(fmt::format("{} {}-{}{}", slice.name, ms, end, slice.note));
  }
  EXPECT_EQ(lanes["app"], (std::vector<std::string>{"on CPU 0-2", "futex 2-50 waker=worker 1 11", "sched 50-52 waker=worker 1 11",
                                                    "on CPU 52-56", "other 56-100"}));
  EXPECT_EQ(lanes["worker 1"], (std::vector<std::string>{"other 10-40"}));
}

TEST(OffCpuFormats, ARecordingOfWaitsOnlyIsATimeline) {
  Profile p = waiting_recording();
  p.samples.clear();
  for (const FormatInfo* format : {&pftrace_format(), &pprof_format(), &text_format()})
    EXPECT_TRUE(write_bytes(*format, p, format->extensions[0])) << format->name;
  EXPECT_EQ(folded(p, Weight::kOffCpu), kOffCpu);
}

}  // namespace
}  // namespace cprof::format
