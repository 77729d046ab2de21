#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <protozero/pbf_writer.hpp>
#include <random>

#include "format/folded/folded.h"
#include "format/pftrace/pftrace.h"
#include "format/pftrace/pftrace_fields.h"
#include "format/test_profiles.h"

namespace cprof::format {
namespace {

using namespace testing;
using profile::TrackId;
using protozero::pbf_writer;

Profile read_ok(std::string_view bytes) {
  auto profile = read_bytes(pftrace_format(), bytes);
  EXPECT_TRUE(profile) << (profile ? "" : profile.error().message);
  return profile ? std::move(*profile) : Profile{};
}

std::string refusal(std::string_view bytes) {
  auto profile = read_bytes(pftrace_format(), bytes);
  return profile ? "read" : profile.error().message;
}

std::string written(const Profile& profile) {
  auto bytes = write_bytes(pftrace_format(), profile, ".pftrace");
  EXPECT_TRUE(bytes) << (bytes ? "" : bytes.error().message);
  return bytes.value_or("");
}

std::string slices_of(const Profile& p) {
  std::string out;
  for (const auto& s : p.slices) {
    out += fmt::format("{} {}+{} {}", p.text(s.name), s.start_ns, s.duration_ns, s.depth);
    if (s.track.valid()) out += fmt::format(" {}", p.text(p.tracks[s.track.index()].name));
    if (s.thread.valid()) out += fmt::format(" tid {}", p.threads[s.thread.index()].tid);
    out += s.is_open ? " open\n" : "\n";
  }
  return out;
}

// A trace put together by hand.
class Trace {
 public:
  struct Packet {
    std::string bytes;
    pbf_writer writer{bytes};
  };

  template <typename Fill>
  Trace& packet(uint32_t sequence, uint32_t flags, Fill&& fill) {
    std::string bytes;
    pbf_writer p(bytes);
    if (sequence) p.add_uint32(pft::Packet::kSequenceId, sequence);
    if (flags) p.add_uint32(pft::Packet::kSequenceFlags, flags);
    fill(p);
    pbf_writer(out).add_message(pft::Trace::kPacket, bytes);
    return *this;
  }

  Trace& thread_track(uint64_t uuid, int32_t pid, int32_t tid, std::string_view name) {
    std::string thread, track;
    pbf_writer t(thread), d(track);
    t.add_int32(pft::TrackDescriptor::kThreadPid, pid);
    t.add_int32(pft::TrackDescriptor::kThreadTid, tid);
    t.add_string(pft::TrackDescriptor::kThreadName, name.data(), name.size());
    d.add_uint64(pft::TrackDescriptor::kUuid, uuid);
    d.add_message(pft::TrackDescriptor::kThread, thread);
    return packet(1, 0, [&](pbf_writer& p) { p.add_message(pft::Packet::kTrackDescriptor, track); });
  }

  Trace& event(uint64_t time, uint32_t type, uint64_t track, std::string_view name, uint64_t name_iid = 0, uint32_t flags = 0,
               uint32_t clock = 0) {
    std::string bytes;
    pbf_writer e(bytes);
    e.add_uint32(pft::TrackEvent::kType, type);
    if (track) e.add_uint64(pft::TrackEvent::kTrackUuid, track);
    if (!name.empty()) e.add_string(pft::TrackEvent::kName, name.data(), name.size());
    if (name_iid) e.add_uint64(pft::TrackEvent::kNameIid, name_iid);
    return packet(1, flags, [&](pbf_writer& p) {
      p.add_uint64(pft::Packet::kTimestamp, time);
      if (clock) p.add_uint32(pft::Packet::kClockId, clock);
      p.add_message(pft::Packet::kTrackEvent, bytes);
    });
  }

  static std::string text(uint64_t iid, std::string_view value) {
    std::string bytes;
    pbf_writer w(bytes);
    w.add_uint64(pft::Interned::kIid, iid);
    w.add_string(pft::Interned::kStr, value.data(), value.size());
    return bytes;
  }

  Trace& intern(uint32_t flags, uint32_t field, uint64_t iid, std::string_view value) {
    std::string bytes;
    pbf_writer(bytes).add_message(field, text(iid, value));
    return packet(1, flags, [&](pbf_writer& p) { p.add_message(pft::Packet::kInternedData, bytes); });
  }

  std::string out;
};

TEST(PftraceReader, RecordingsComeBack) {
  const Profile profile = example_recording();
  const std::string bytes = written(profile);
  const Profile again = read_ok(bytes);
  EXPECT_EQ(again.samples.size(), profile.samples.size());
  WriteOptions by_thread;
  by_thread.by = GroupBy::kThread;
  EXPECT_EQ(write_bytes(folded_format(), again, ".folded", by_thread).value_or("a"),
            write_bytes(folded_format(), profile, ".folded", by_thread).value_or("b"));
  EXPECT_TRUE(again.slices.empty());
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    EXPECT_EQ(again.samples[i].time_ns, profile.samples[i].time_ns);
    EXPECT_EQ(again.samples[i].weight, profile.samples[i].weight);
    EXPECT_EQ(again.samples[i].cpu, profile.samples[i].cpu);
    EXPECT_EQ(again.samples[i].in_kernel, profile.samples[i].in_kernel);
  }
  EXPECT_EQ(again.run.start_realtime_ns, profile.run.start_realtime_ns);
  EXPECT_EQ(written(read_ok(written(again))), written(again));
  // Inlined functions are one place again.
  for (const auto& location : again.locations) EXPECT_LE(location.line_count, 3);
  EXPECT_TRUE(std::ranges::any_of(again.locations, [](const auto& l) { return l.line_count == 3; }));
}

TEST(PftraceReader, TracksMarksCountersAndOpenSlicesComeBack) {
  Recording r;
  Profile& p = r.builder.profile();
  auto process = p.threads[r.main.index()].process;
  p.tracks.push_back({.name = r.builder.intern("jobs"), .process = process});
  p.tracks.push_back({.name = r.builder.intern("heap"), .unit = r.builder.intern("bytes"), .process = process});
  p.tracks.push_back({.name = r.builder.intern("all"), .unit = r.builder.intern("watt")});
  p.slices.push_back({.thread = r.main, .name = r.builder.intern("scope"), .category = r.builder.intern("own"), .start_ns = 1000, .duration_ns = 500});
  p.slices.push_back({.thread = r.worker, .name = r.builder.intern("open"), .start_ns = 1000, .duration_ns = 9000, .is_open = true});
  p.slices.push_back({.name = r.builder.intern("one"), .start_ns = 1000, .duration_ns = 10, .track = TrackId(size_t{0})});
  p.slices.push_back({.name = r.builder.intern("two"), .start_ns = 1005, .duration_ns = 10, .track = TrackId(size_t{0})});
  const profile::Label label{.key = r.builder.intern("n"), .number = -7, .is_number = true};
  p.marks.push_back({.thread = r.main, .name = r.builder.intern("mark"), .time_ns = 1500, .labels = r.builder.label_set({&label, 1})});
  p.marks.push_back({.name = r.builder.intern("other"), .time_ns = 1600, .track = TrackId(size_t{0})});
  p.counters.push_back({.track = TrackId(size_t{1}), .time_ns = 1000, .value = 4096});
  p.counters.push_back({.track = TrackId(size_t{2}), .time_ns = 2000, .value = 0.5});
  const std::string bytes = written(r.builder.take());
  const Profile again = read_ok(bytes);
  EXPECT_EQ(slices_of(again), "scope 1000+500 0 tid 10\nopen 1000+9000 0 tid 11 open\none 1000+10 0 jobs\ntwo 1005+10 0 jobs (2)\n");
  ASSERT_EQ(again.marks.size(), 2u);
  EXPECT_EQ(again.labels[again.label_sets[again.marks[0].labels.index()].first].number, -7);
  EXPECT_EQ(again.text(again.tracks[again.marks[1].track.index()].name), "jobs");
  ASSERT_EQ(again.counters.size(), 2u);
  const auto& heap = again.tracks[again.counters[0].track.index()];
  EXPECT_EQ(again.text(heap.unit), "bytes");
  EXPECT_EQ(again.processes[heap.process.index()].pid, 10);
  EXPECT_EQ(again.counters[1].value, 0.5);
  EXPECT_EQ(again.text(again.tracks[again.counters[1].track.index()].unit), "watt");
  EXPECT_EQ(written(read_ok(written(again))), written(again));
}

TEST(PftraceReader, NamesThatAreNotInternedAreUnnamed) {
  Trace t;
  t.thread_track(5, 1, 2, "worker");
  t.event(100, 1, 5, {}, 7, pft::Packet::kCleared);
  t.event(300, 2, 5, {});
  const Profile p = read_ok(t.out);
  EXPECT_EQ(slices_of(p), "[unnamed] 100+200 0 tid 2\n");
  EXPECT_EQ(p.diagnostics.count("pftrace_unnamed"), 1u);
}

TEST(PftraceReader, StateIsValidFromClearedToLoss) {
  Trace t;
  t.thread_track(5, 1, 2, "worker");
  t.intern(0, pft::Interned::kEventNames, 1, "before");  // not yet valid
  t.event(10, 3, 5, {}, 1, pft::Packet::kNeeds);           // dropped
  t.intern(pft::Packet::kCleared, pft::Interned::kEventNames, 1, "first");
  t.intern(0, pft::Interned::kEventNames, 1, "redefined");  // the first holds
  t.event(20, 3, 5, {}, 1, pft::Packet::kNeeds);
  t.packet(1, 0, [](pbf_writer& p) { p.add_bool(pft::Packet::kPreviousPacketDropped, true); });
  t.event(30, 3, 5, {}, 1, pft::Packet::kNeeds);  // dropped
  t.intern(pft::Packet::kCleared, pft::Interned::kEventNames, 1, "second");
  t.event(40, 3, 5, {}, 1, pft::Packet::kNeeds);
  const Profile p = read_ok(t.out);
  std::string marks;
  for (const auto& m : p.marks) marks += fmt::format("{} {}\n", m.time_ns, p.text(m.name));
  EXPECT_EQ(marks, "20 first\n40 second\n");
  EXPECT_EQ(p.diagnostics.count("pftrace_state_lost"), 2u);
  EXPECT_EQ(p.diagnostics.count("pftrace_interned_ignored"), 1u);
}

TEST(PftraceReader, EventsComeInAnyOrderAndTracksLate) {
  Trace t;
  t.event(300, 2, 5, {});
  t.event(100, 1, 5, "a");
  t.event(120, 1, 5, "b");
  t.event(200, 2, 5, {});
  t.event(400, 2, 5, {});  // closes nothing
  t.event(250, 1, 77, "elsewhere");
  t.thread_track(5, 1, 2, "worker");
  const Profile p = read_ok(t.out);
  EXPECT_EQ(slices_of(p), "a 100+200 0 tid 2\nb 120+80 1 tid 2\nelsewhere 250+150 0 track 77 open\n");
  EXPECT_EQ(p.diagnostics.count("pftrace_unmatched_ends"), 1u);
}

std::string clock(uint32_t id, uint64_t time) {
  std::string bytes;
  pbf_writer w(bytes);
  w.add_uint32(pft::ClockSnapshot::kClockId, id);
  w.add_uint64(pft::ClockSnapshot::kTimestamp, time);
  return bytes;
}

TEST(PftraceReader, TimesOfEveryClockBecomeMonotonic) {
  Trace t;
  std::string snapshot;
  pbf_writer s(snapshot);
  s.add_message(1, clock(pft::ClockSnapshot::kBoottime, 5000));
  s.add_message(1, clock(pft::ClockSnapshot::kMonotonic, 1000));
  s.add_message(1, clock(64, 0));
  t.packet(1, pft::Packet::kCleared, [&](pbf_writer& p) { p.add_message(pft::Packet::kClockSnapshot, snapshot); });
  t.thread_track(5, 1, 2, "worker");
  t.event(5100, 3, 5, "boot");
  t.event(1200, 3, 5, "mono", 0, 0, pft::ClockSnapshot::kMonotonic);
  t.event(300, 3, 5, "own", 0, 0, 64);
  t.event(9000, 3, 5, "unknown", 0, 0, 65);
  const Profile p = read_ok(t.out);
  std::string marks;
  for (const auto& m : p.marks) marks += fmt::format("{} {}\n", m.time_ns, p.text(m.name));
  EXPECT_EQ(marks, "1100 boot\n1200 mono\n1300 own\n9000 unknown\n");
  EXPECT_EQ(p.diagnostics.count("pftrace_unknown_clocks"), 1u);
}

// A StackSample with two metrics, its stack interned.
TEST(PftraceReader, StackSamplesHaveWeights) {
  Trace t;
  std::string primary, follower, stacks, defaults;
  pbf_writer(primary).add_string(pft::StackSample::kName, "wall");
  pbf_writer(primary).add_uint32(pft::StackSample::kUnit, 1);
  pbf_writer(follower).add_string(pft::StackSample::kName, "bytes");
  pbf_writer(follower).add_uint32(pft::StackSample::kUnit, 4);
  pbf_writer(stacks).add_message(pft::Defaults::kPrimary, primary);
  pbf_writer(stacks).add_message(pft::Defaults::kFollowers, follower);
  pbf_writer(defaults).add_message(pft::Defaults::kStackSample, stacks);
  t.packet(1, pft::Packet::kCleared, [&](pbf_writer& p) { p.add_message(pft::Packet::kDefaults, defaults); });
  std::string interned, frame, callstack, task, sample;
  pbf_writer f(frame), c(callstack);
  f.add_uint64(pft::Frame::kIid, 1);
  f.add_uint64(pft::Frame::kFunctionName, 9);
  c.add_uint64(pft::Callstack::kIid, 3);
  c.add_uint64(pft::Callstack::kFrameIds, 1);
  pbf_writer i(interned);
  i.add_message(pft::Interned::kCallstacks, callstack);  // before what it names
  i.add_message(pft::Interned::kFrames, frame);
  i.add_message(pft::Interned::kFunctionNames, Trace::text(9, "work"));
  pbf_writer(task).add_int32(pft::StackSample::kPid, 4);
  pbf_writer(task).add_int32(pft::StackSample::kTid, 5);
  pbf_writer w(sample);
  w.add_message(pft::StackSample::kTask, task);
  w.add_uint64(pft::StackSample::kCallstackIid, 3);
  w.add_int64(pft::StackSample::kWeight, 250);
  const int64_t followers[] = {64};
  w.add_packed_int64(pft::StackSample::kFollowerWeights, std::begin(followers), std::end(followers));
  t.packet(1, pft::Packet::kNeeds, [&](pbf_writer& p) {
    p.add_uint64(pft::Packet::kTimestamp, 100);
    p.add_message(pft::Packet::kInternedData, interned);
    p.add_message(pft::Packet::kStackSample, sample);
  });
  EXPECT_EQ(dump(read_ok(t.out)), "work@0:; bytes/bytes=64 tid=5\nwork@0:; wall/nanoseconds=250 tid=5\n");
}

std::string compressed(const std::string& trace, bool is_zstd) {
  std::string packed(is_zstd ? ZSTD_compressBound(trace.size()) : compressBound(trace.size()), 0);
  if (is_zstd) {
    packed.resize(ZSTD_compress(packed.data(), packed.size(), trace.data(), trace.size(), 1));
  } else {
    uLongf size = packed.size();
    EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(trace.data()), trace.size()), Z_OK);
    packed.resize(size);
  }
  Trace t;
  t.packet(0, 0, [&](pbf_writer& p) {
    p.add_bytes(is_zstd ? pft::Packet::kZstdPackets : pft::Packet::kCompressedPackets, packed.data(), packed.size());
  });
  return t.out;
}

TEST(PftraceReader, CompressedPackets) {
  const std::string plain = written(example_recording());
  const std::string expected = dump(read_ok(plain));
  for (bool is_zstd : {false, true}) {
    const std::string packed = compressed(plain, is_zstd);
    EXPECT_TRUE(sniff_pftrace(as_span(packed)));
    EXPECT_EQ(dump(read_ok(packed)), expected);
    EXPECT_NE(refusal(packed.substr(0, packed.size() - 5)).find("the file ends in the packet at byte 0"), std::string::npos);
    const std::string bomb = compressed(std::string(40 << 20, '\0'), is_zstd);
    EXPECT_NE(refusal(bomb).find("more than is allowed"), std::string::npos);
  }
}

TEST(PftraceReader, WhatCannotBeReadIsRefused) {
  const std::string good = written(example_recording());
  EXPECT_NE(refusal(good.substr(0, good.size() - 3)).find("the file ends in the packet at byte"), std::string::npos);
  EXPECT_NE(refusal("\x0a\xff\xff\xff\xff\xff\x7f").find("a claim of"), std::string::npos);
  EXPECT_NE(refusal(good + "rubbish").find("damaged"), std::string::npos);
  EXPECT_NE(refusal("").find("no slices, samples, marks or counters"), std::string::npos);
  Trace heap;
  heap.packet(1, 0, [](pbf_writer& p) { p.add_string(37, "xx"); });
  EXPECT_NE(refusal(heap.out).find("not supported"), std::string::npos);
}

TEST(PftraceReader, DamagedFilesAreReadOrRefused) {
  const std::string good = written(example_recording());
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    std::string bad = good.substr(0, random() % 3 ? good.size() : random() % good.size());
    for (unsigned n = random() % 5; n > 0 && !bad.empty(); --n) bad[random() % bad.size()] = static_cast<char>(random());
    auto profile = read_bytes(pftrace_format(), bad);
    EXPECT_TRUE(profile || profile.error().message.starts_with("test-input: ")) << profile.error().message;
  }
}

}  // namespace
}  // namespace cprof::format
