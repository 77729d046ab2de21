#include "format/pftrace/pftrace.h"

#include <random>

#include <protozero/varint.hpp>

#include "format/pftrace/pftrace_decode_test.h"
#include "format/test_profiles.h"
#include "timeline/timeline.h"

namespace cprof::format {
namespace {

using namespace testing;

std::string written(const Profile& profile, Diagnostics* losses = nullptr) {
  WriteOptions options;
  options.losses = losses;
  auto bytes = write_bytes(pftrace_format(), profile, ".pftrace", options);
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes.value_or("");
}

TraceDecoder decoded(const Profile& profile) {
  TraceDecoder trace(written(profile));
  EXPECT_TRUE(trace.errors.empty()) << fmt::format("{}", fmt::join(trace.errors, "\n"));
  return trace;
}

// The slices that the timeline gives are those in the file, on the right threads.
void expect_same_slices(const Profile& profile, const TraceDecoder& trace) {
  size_t expected = 0;
  uint64_t length = 0, decoded_length = 0;
  timeline::for_each_slice(profile, timeline::default_options(profile), [&](const timeline::FrameSlice& slice) {
    ++expected;
    length += slice.end_ns - slice.start_ns;
  });
  for (const DecodedSlice& slice : trace.slices) {
    EXPECT_GE(slice.end_ns, slice.start_ns);
    decoded_length += slice.end_ns - slice.start_ns;
  }
  EXPECT_EQ(trace.slices.size(), expected);
  EXPECT_EQ(decoded_length, length);
}

// verifies: A8
TEST(Pftrace, KeepsTheImportersRules) {
  const Profile profile = example_recording();
  TraceDecoder trace = decoded(profile);
  EXPECT_TRUE(trace.has_clocks);
  EXPECT_EQ(trace.samples.size(), profile.samples.size());
  EXPECT_TRUE(trace.shared_keys.empty());
  expect_same_slices(profile, trace);
}

TEST(Pftrace, StacksAreRootFirstWithInlinesAndMappings) {
  TraceDecoder trace = decoded(example_recording());
  ASSERT_FALSE(trace.samples.empty());
  EXPECT_EQ(trace.samples[0].frames, (std::vector<std::string>{"main", "c", "b", "a"}));
  EXPECT_EQ(trace.samples[0].mappings[0], "usr/bin/app");
  EXPECT_EQ(trace.samples[0].time_ns, Recording::kStart);
  bool found_unknown = false;
  for (const DecodedSample& s : trace.samples) found_unknown |= s.frames == std::vector<std::string>{"[unknown]"};
  EXPECT_TRUE(found_unknown);
}

TEST(Pftrace, ProcessesAndThreadsAreNamed) {
  TraceDecoder trace = decoded(example_recording());
  std::map<std::pair<int32_t, int32_t>, std::string> names;
  for (const auto& [uuid, track] : trace.tracks) names[{track.pid, track.tid}] = track.name;
  EXPECT_EQ(names, (std::map<std::pair<int32_t, int32_t>, std::string>{
                       {{10, -1}, "app"}, {{10, 10}, "app"}, {{10, 11}, "worker 1"}, {{20, -1}, "tool"}, {{20, 20}, "tool"}}));
  for (const auto& [uuid, track] : trace.tracks) {
    if (track.tid >= 0) {
      EXPECT_EQ(trace.tracks[track.parent].pid, track.pid);
    }
  }
}

TEST(Pftrace, TwiceIsIdentical) { EXPECT_EQ(written(example_recording()), written(example_recording())); }

TEST(Pftrace, OverlappingSlicesGetTracksOfTheirOwn) {
  Recording r;
  auto slice = [&](std::string_view name, uint64_t start, uint64_t end) {
    r.builder.profile().slices.push_back(
        {.thread = r.main, .name = r.builder.intern(name), .category = r.builder.intern("job"), .start_ns = start, .duration_ns = end - start});
  };
  slice("one", 0, 10);
  slice("two", 5, 15);
  slice("inner", 6, 9);
  slice("zero", 20, 20);
  TraceDecoder trace = decoded(r.builder.take());
  ASSERT_EQ(trace.slices.size(), 4u);
  std::map<std::string, DecodedSlice> by_name;
  for (const auto& s : trace.slices) by_name[s.name] = s;
  EXPECT_EQ(by_name["one"].end_ns - by_name["one"].start_ns, 10u);
  EXPECT_EQ(by_name["two"].end_ns - by_name["two"].start_ns, 10u);
  EXPECT_NE(by_name["one"].track, by_name["two"].track);
  EXPECT_EQ(by_name["inner"].depth, 1u);
  EXPECT_EQ(by_name["zero"].end_ns, 20u);
}

TEST(Pftrace, ScopesAndStacksOfOneThreadDoNotMix) {
  Recording r;
  r.sample(r.main, 0, {r.code(0x10, {r.line("f")})});
  r.builder.profile().slices.push_back({.thread = r.main, .name = r.builder.intern("scope"), .category = {}, .start_ns = Recording::kStart + 1, .duration_ns = 5});
  r.builder.profile().slices.back().category = r.builder.intern("");
  TraceDecoder trace = decoded(r.builder.take());
  ASSERT_EQ(trace.slices.size(), 2u);
  EXPECT_NE(trace.slices[0].track, trace.slices[1].track);
}

TEST(Pftrace, SlicesBelow512AreCounted) {
  Recording r;
  std::vector<LocationId> stack;
  for (uint64_t i = 0; i < 600; ++i) stack.push_back(r.code(0x10 + i * 16, {r.line(fmt::format("f{}", i))}));
  r.sample(r.main, 0, stack);
  r.sample(r.main, 1, stack);
  Diagnostics losses;
  const Profile profile = r.builder.take();
  TraceDecoder trace(written(profile, &losses));
  EXPECT_TRUE(trace.errors.empty()) << trace.errors.front();
  EXPECT_EQ(trace.slices.size(), 512u);
  EXPECT_EQ(losses.count("pftrace_slices_too_deep"), 600u - 512u);
  EXPECT_EQ(trace.samples[0].frames.size(), 600u);
}

TEST(Pftrace, EachMetricHasItsSequence) {
  Recording r;
  auto faults = r.builder.add_metric("page-faults", "count", 1);
  auto f = r.code(0x10, {r.line("f")});
  r.sample(r.main, 0, {f});
  r.builder.add_sample({.time_ns = Recording::kStart, .weight = 1, .thread = r.main, .site = r.builder.stack(std::vector{f}), .metric = faults});
  TraceDecoder trace = decoded(r.builder.take());
  EXPECT_EQ(trace.samples.size(), 2u);
}

TEST(Pftrace, ReusedThreadIdsShareATrack) {
  Recording r;
  auto process = r.builder.add_process(10, "later");
  auto thread = r.builder.add_thread(process, 10, "later");
  auto f = r.code(0x10, {r.line("f")});
  r.sample(r.main, 0, {f});
  r.sample(thread, 50, {f});
  EXPECT_EQ(decoded(r.builder.take()).samples.size(), 2u);
}

TEST(Pftrace, ARecordingWithoutSamplesIsAnEmptyTrace) {
  ProfileBuilder builder;
  builder.add_metric("cpu-clock", "nanoseconds", 1'000'000, true);
  builder.profile().run.start_ns = 5;
  builder.profile().run.end_ns = 10;
  auto empty = write_bytes(pftrace_format(), builder.take(), ".pftrace");
  EXPECT_TRUE(empty) << empty.error().message;
}

// verifies: D4
TEST(Pftrace, UntimedProfilesAreRefused) {
  ProfileBuilder builder;
  builder.add_metric("samples", "count");
  auto none = write_bytes(pftrace_format(), builder.take(), ".pftrace");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no times"), std::string::npos);
}

// Stacks, threads, kinds and gaps at random.
Profile random_recording(std::mt19937& random) {
  Recording r;
  std::vector<LocationId> pool;
  for (uint64_t i = 0; i < 8; ++i) {
    std::vector<profile::Line> lines;
    for (unsigned n = random() % 3; n > 0; --n)
      lines.push_back(r.line(fmt::format("f{}", random() % 5), random() % 3, random() % 2 ? "x.cc" : ""));
    pool.push_back(random() % 3 ? r.code(random() % 64, lines, random() % 2) : r.in_kernel(random() % 64, "k", random() % 2));
    if (random() % 4 == 0) {
      profile::Line line = r.line("jit");
      pool.push_back(r.builder.named_location({}, FrameKind::kJit, {&line, 1}));
    }
  }
  const profile::ThreadId threads[] = {r.main, r.worker, r.tool};
  for (unsigned n = 1 + random() % 30; n > 0; --n) {
    std::vector<LocationId> stack;
    for (unsigned depth = random() % 6; depth > 0; --depth) stack.push_back(pool[random() % pool.size()]);
    r.sample(threads[random() % 3], random() % 40, stack);
  }
  for (unsigned n = random() % 6; n > 0; --n)
    r.builder.profile().slices.push_back({.thread = threads[random() % 3], .name = r.builder.intern("s"), .category = r.builder.intern(""),
                                          .start_ns = random() % 100, .duration_ns = random() % 50});
  return r.builder.take();
}

#ifdef CPROF_SANITIZED
constexpr int kRandomRecordings = 1'000;  // each takes as long as ten others
#else
constexpr int kRandomRecordings = 10'000;
#endif

TEST(Pftrace, RandomRecordingsKeepTheRules) {
  std::mt19937 random(5);
  for (int i = 0; i < kRandomRecordings; ++i) {
    const Profile profile = random_recording(random);
    auto out = write_bytes(pftrace_format(), profile, ".pftrace");
    ASSERT_TRUE(out);
    TraceDecoder trace(*out);
    ASSERT_TRUE(trace.errors.empty()) << "round " << i << ": " << trace.errors.front();
    ASSERT_EQ(trace.samples.size(), profile.samples.size());
  }
}

// The packets of a trace, each with its tag and length.
std::vector<std::string> packets_of(const std::string& trace) {
  std::vector<std::string> packets;
  const char* at = trace.data();
  const char* end = at + trace.size();
  while (at < end) {
    const char* body = at + 1;
    const uint64_t length = protozero::decode_varint(&body, end);
    packets.emplace_back(at, body + length);
    at = body + length;
  }
  return packets;
}

// The decoder itself: it sees what is wrong when packets are missing, doubled or in a wrong order.
TEST(PftraceDecoder, SeesBrokenFiles) {
  const std::string good = written(example_recording());
  const std::vector<std::string> packets = packets_of(good);
  EXPECT_EQ(fmt::format("{}", fmt::join(packets, "")), good);
  EXPECT_FALSE(TraceDecoder(std::string_view(good).substr(0, good.size() - 3)).errors.empty());
  size_t samples_only = 0;
  for (size_t i = 0; i < packets.size(); ++i) {
    std::string without, twice;
    for (size_t j = 0; j < packets.size(); ++j) {
      if (j != i) without += packets[j];
      twice += packets[j];
      if (j == i) twice += packets[j];
    }
    samples_only += TraceDecoder(without).errors.empty() + TraceDecoder(twice).errors.empty();
  }
  // Only a sample that defines nothing can be missing, and only it and the clocks can come twice, unnoticed.
  EXPECT_LE(samples_only, 2 * example_recording().samples.size() + 1);
}

}  // namespace
}  // namespace cprof::format
