#include "format/pftrace/trace_tracks.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/pftrace/pftrace_fields.h"

namespace cprof::format {
namespace {

using profile::ProcessId;
using profile::Profile;
using profile::ThreadId;
using profile::TrackId;

constexpr int kMaxAncestors = 100;

}  // namespace

ProcessId TraceTracks::process(int32_t pid) {
  auto [it, is_new] = processes_.try_emplace(pid);
  if (is_new) it->second = builder_.add_process(pid, {});
  return it->second;
}

ThreadId TraceTracks::thread(int32_t pid, int32_t tid) {
  auto [it, is_new] = threads_.try_emplace({pid, tid});
  if (is_new) it->second = builder_.add_thread(process(pid), tid, {});
  return it->second;
}

// Our own writer's stand-ins for names are none.
void TraceTracks::name_process(int32_t pid, std::string_view name) {
  const ProcessId id = process(pid);
  if (!name.empty() && name != fmt::format("pid {}", pid)) builder_.profile().processes[id.index()].name = builder_.intern(name);
}

void TraceTracks::name_thread(int32_t pid, int32_t tid, std::string_view name) {
  const ThreadId id = thread(pid, tid);
  if (!name.empty() && name != fmt::format("tid {}", tid)) builder_.profile().threads[id.index()].name = builder_.intern(name);
}

void TraceTracks::describe(ProtoFields fields) {
  using namespace pft::TrackDescriptor;
  uint64_t uuid = 0;
  Descriptor track{.is_known = true};
  while (fields.next()) {
    switch (fields.tag()) {
      case kUuid: uuid = fields.get_uint64(); break;
      case kParentUuid: track.parent = fields.get_uint64(); break;
      case kStaticName:
      case kName: track.name = builder_.intern(fields.get_text()); break;
      case kProcess: describe_process(track, fields.get_message()); break;
      case kThread: describe_thread(track, fields.get_message()); break;
      case kCounter: describe_counter(track, fields.get_message()); break;
      default: fields.skip();
    }
  }
  Descriptor& known = descriptors_[uuid];
  // Told again, a track may say less.
  if (known.is_known) {
    if (track.name == profile::kNoText) track.name = known.name;
    if (track.parent == 0) track.parent = known.parent;
    if (!track.thread.valid()) track.thread = known.thread;
    if (!track.process.valid()) track.process = known.process;
  }
  known = track;
}

void TraceTracks::describe_process(Descriptor& track, ProtoFields fields) {
  using namespace pft::TrackDescriptor;
  int32_t pid = 0;
  std::string_view name, program;
  while (fields.next()) {
    switch (fields.tag()) {
      case kProcessPid: pid = fields.get_int32(); break;
      case kProcessName: name = fields.get_text(); break;
      case kProcessCommandLine: {
        const std::string_view argument = fields.get_text();
        if (program.empty()) program = argument;
        break;
      }
      default: fields.skip();
    }
  }
  track.process = process(pid);
  name_process(pid, name.empty() ? program.substr(program.rfind('/') + 1) : name);
}

void TraceTracks::describe_thread(Descriptor& track, ProtoFields fields) {
  using namespace pft::TrackDescriptor;
  int32_t pid = 0, tid = 0;
  std::string_view name;
  while (fields.next()) {
    switch (fields.tag()) {
      case kThreadPid: pid = fields.get_int32(); break;
      case kThreadTid: tid = fields.get_int32(); break;
      case kThreadName: name = fields.get_text(); break;
      default: fields.skip();
    }
  }
  track.thread = thread(pid, tid);
  track.process = process(pid);
  name_thread(pid, tid, name);
}

void TraceTracks::describe_counter(Descriptor& track, ProtoFields fields) {
  using namespace pft::CounterDescriptor;
  track.is_counter = true;
  constexpr std::string_view kUnits[] = {"", "nanoseconds", "count", "bytes"};
  while (fields.next()) {
    switch (fields.tag()) {
      case kUnit: {
        const uint32_t unit = fields.get_uint32();
        if (unit < std::size(kUnits)) track.unit = builder_.intern(kUnits[unit]);
        break;
      }
      case kUnitName: track.unit = builder_.intern(fields.get_text()); break;
      case kMultiplier: track.multiplier = static_cast<double>(fields.get_int64()); break;
      case kIsIncremental: track.is_incremental = fields.get_bool(); break;
      default: fields.skip();
    }
  }
}

uint32_t TraceTracks::lane_of_uuid(uint64_t uuid) {
  auto [it, is_new] = lane_of_uuid_.try_emplace(uuid, static_cast<uint32_t>(lanes_.size()));
  if (is_new) lanes_.push_back({.uuid = uuid});
  return it->second;
}

uint32_t TraceTracks::lane_of_thread(int32_t pid, int32_t tid) {
  const ThreadId id = thread(pid, tid);
  auto [it, is_new] = lane_of_thread_.try_emplace(id, static_cast<uint32_t>(lanes_.size()));
  if (is_new) lanes_.push_back({.thread = id, .is_resolved = true});
  return it->second;
}

void TraceTracks::add_slice(const Edge& edge, uint64_t duration_ns) {
  wholes_.push_back({edge.lane,
                     {.name = edge.name,
                      .category = edge.category,
                      .start_ns = static_cast<uint64_t>(edge.time_ns),
                      .duration_ns = duration_ns,
                      .labels = edge.labels}});
}

// The thread of a thread's own track; a track of its own for all others, below the nearest thread or process.
TraceTracks::Lane& TraceTracks::resolve(uint32_t number) {
  Lane& lane = lanes_[number];
  if (lane.is_resolved) return lane;
  lane.is_resolved = true;
  const Descriptor& descriptor = descriptors_[lane.uuid];
  if (descriptor.thread.valid() && !descriptor.is_counter) lane.thread = descriptor.thread;
  else lane.track = make_track(descriptor, lane.uuid);
  return lane;
}

TrackId TraceTracks::make_track(const Descriptor& descriptor, uint64_t uuid) {
  Profile& profile = builder_.profile();
  profile::Track track{.name = descriptor.name, .unit = descriptor.unit, .process = descriptor.process, .thread = descriptor.thread};
  uint64_t parent = descriptor.parent;
  for (int i = 0; i < kMaxAncestors && parent != 0 && !track.process.valid(); ++i) {
    const auto found = descriptors_.find(parent);
    if (found == descriptors_.end()) break;
    track.process = found->second.process;
    track.thread = found->second.thread;
    parent = found->second.parent;
  }
  if (track.name == profile::kNoText && track.process.valid()) track.name = profile.processes[track.process.index()].name;
  if (track.name == profile::kNoText) track.name = builder_.intern(fmt::format("track {}", uuid));
  profile.tracks.push_back(track);
  return TrackId(profile.tracks.size() - 1);
}

void TraceTracks::finish(uint64_t end_of_trace, PairCounts& counts) {
  finish_edges(end_of_trace, counts);
  for (Whole& whole : wholes_) {
    const Lane& lane = resolve(whole.lane);
    whole.slice.thread = lane.thread;
    whole.slice.track = lane.track;
    builder_.profile().slices.push_back(whole.slice);
  }
  finish_counters();
}

void TraceTracks::finish_edges(uint64_t end_of_trace, PairCounts& counts) {
  Profile& profile = builder_.profile();
  LanePairs pairs(builder_, static_cast<int64_t>(end_of_trace), counts);
  uint32_t last = 0;
  for (uint32_t row : in_lanes(edges_, lanes_.size())) {
    const Edge& edge = edges_[row];
    if (edge.lane != last) pairs.close_all();
    last = edge.lane;
    const Lane& lane = resolve(edge.lane);
    switch (edge.kind) {
      case Edge::Kind::kEnd: pairs.end(edge); break;
      case Edge::Kind::kBegin: {
        profile::Slice& slice = profile.slices[pairs.begin(edge)];
        slice.thread = lane.thread;
        slice.track = lane.track;
        break;
      }
      case Edge::Kind::kMark:
        profile.marks.push_back({.thread = lane.thread,
                                 .name = edge.name,
                                 .category = edge.category,
                                 .time_ns = static_cast<uint64_t>(edge.time_ns),
                                 .track = lane.track,
                                 .labels = edge.labels});
    }
  }
  pairs.close_all();
  edges_ = {};
}

void TraceTracks::finish_counters() {
  Profile& profile = builder_.profile();
  std::ranges::stable_sort(values_, {}, &Value::time_ns);
  std::vector<double> sums(lanes_.size());
  for (const Value& value : values_) {
    Lane& lane = resolve(value.lane);
    const Descriptor& descriptor = descriptors_[lane.uuid];
    // A thread's own track holds slices; its counter values need one of their own.
    if (!lane.track.valid()) lane.track = make_track(descriptor, lane.uuid);
    double shown = value.value;
    if (descriptor.is_incremental) shown = sums[value.lane] += value.value;
    profile.counters.push_back({.track = lane.track, .time_ns = value.time_ns, .value = shown * descriptor.multiplier});
  }
  values_ = {};
}

}  // namespace cprof::format
