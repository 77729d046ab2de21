// Each message of the trace has its function, called from packet(): a sequence's interned data come before what refers to
// them, so one pass is enough. Slices and tracks, whose rules span packets, are checked when all has been read.
#include "format/pftrace/pftrace_decode_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "format/pftrace/pftrace_fields.h"

namespace cprof::format::testing {

TraceDecoder::TraceDecoder(std::string_view bytes) {
  try {
    pbf_reader trace(bytes.data(), bytes.size());
    while (trace.next()) {
      ++packets;
      if (trace.tag() != pft::Trace::kPacket) broken("a field that is no packet");
      packet(trace.get_message());
    }
  } catch (const protozero::exception& error) {
    broken(error.what());
  }
  match_slices();
  check_tracks();
}

void TraceDecoder::broken(std::string_view what) { errors.push_back(fmt::format("packet {}: {}", packets, what)); }

void TraceDecoder::packet(pbf_reader p) {
  uint64_t time_ns = 0;
  uint32_t sequence_id = 0, flags = 0;
  bool has_time = false, has_clock_id = false, is_first = false;
  std::map<uint32_t, protozero::data_view> parts;
  while (p.next()) {
    switch (p.tag()) {
      case pft::Packet::kTimestamp: time_ns = p.get_uint64(), has_time = true; break;
      case pft::Packet::kSequenceId: sequence_id = p.get_uint32(); break;
      case pft::Packet::kSequenceFlags: flags = p.get_uint32(); break;
      case pft::Packet::kFirstPacketOnSequence: is_first = p.get_bool(); break;
      case pft::Packet::kClockId: has_clock_id = p.get_uint32() != 0; break;
      case pft::Packet::kPreviousPacketDropped: broken("previous_packet_dropped"), p.skip(); break;
      default: {
        const uint32_t field = p.tag();
        if (p.wire_type() == protozero::pbf_wire_type::length_delimited) parts[field] = p.get_view();
        else broken("an unknown number field"), p.skip();
      }
    }
  }
  if (parts.contains(pft::Packet::kClockSnapshot)) return clocks(pbf_reader(parts[pft::Packet::kClockSnapshot]));
  if (sequence_id == 0) return broken("no sequence id");
  const bool is_new = !sequences_.contains(sequence_id);
  Sequence& sequence = sequences_[sequence_id];
  if (is_new && !(flags & pft::Packet::kCleared)) broken("a sequence does not begin with CLEARED");
  if (is_new != is_first) broken("first_packet_on_sequence is wrong");
  if (flags & pft::Packet::kCleared) sequence = {}, sequence.is_valid = true;
  if ((flags & pft::Packet::kNeeds) && !sequence.is_valid) broken("NEEDS before CLEARED");
  if (parts.contains(pft::Packet::kDefaults)) defaults(pbf_reader(parts[pft::Packet::kDefaults]), sequence);
  if (has_time && !has_clocks) broken("a timestamp before the clock snapshot");
  if (has_time && !sequence.has_monotonic_default && !has_clock_id) broken("a timestamp without a clock");
  if (has_time && time_ns > INT64_MAX) broken("a timestamp of 2^63 or later");
  const bool uses_state = parts.contains(pft::Packet::kInternedData) || parts.contains(pft::Packet::kPerfSample) || has_time;
  if (uses_state && !(flags & pft::Packet::kNeeds)) broken("uses the sequence's state without NEEDS");
  if (parts.contains(pft::Packet::kInternedData)) interned(parts[pft::Packet::kInternedData], sequence);
  if (parts.contains(pft::Packet::kTrackDescriptor)) descriptor(pbf_reader(parts[pft::Packet::kTrackDescriptor]));
  if (parts.contains(pft::Packet::kTrackEvent)) event(pbf_reader(parts[pft::Packet::kTrackEvent]), time_ns, has_time);
  if (parts.contains(pft::Packet::kPerfSample)) sample(pbf_reader(parts[pft::Packet::kPerfSample]), time_ns, has_time, sequence);
}

void TraceDecoder::clocks(pbf_reader snapshot) {
  std::set<uint32_t> ids;
  while (snapshot.next()) {
    if (snapshot.tag() != pft::ClockSnapshot::kClocks) {
      broken("unknown field of a clock snapshot"), snapshot.skip();
      continue;
    }
    pbf_reader clock = snapshot.get_message();
    bool has_time = false;
    while (clock.next()) {
      if (clock.tag() == pft::ClockSnapshot::kClockId) ids.insert(clock.get_uint32());
      else has_time = true, clock.skip();
    }
    if (!has_time) broken("a clock without a time");
  }
  has_clocks = ids.contains(pft::ClockSnapshot::kMonotonic) && ids.contains(pft::ClockSnapshot::kBoottime);
  if (!has_clocks) broken("MONOTONIC is not linked to BOOTTIME");
}

void TraceDecoder::defaults(pbf_reader d, Sequence& sequence) {
  while (d.next()) {
    if (d.tag() == pft::Defaults::kClockId) sequence.has_monotonic_default = d.get_uint32() == pft::ClockSnapshot::kMonotonic;
    else d.skip();
  }
}

template <typename Map, typename Value>
void TraceDecoder::define(Map& map, uint64_t iid, Value value, std::string_view what) {
  if (iid == 0) broken(fmt::format("{} with iid 0", what));
  if (!map.emplace(iid, std::move(value)).second) broken(fmt::format("{} {} is defined twice", what, iid));
}

// All kinds in the order in which they refer to each other; the message may have them in any order.
void TraceDecoder::interned(protozero::data_view bytes, Sequence& s) {
  for (pbf_reader i(bytes); i.next();) {
    const uint32_t field = i.tag();
    const bool is_text = field == pft::Interned::kFunctionNames || field == pft::Interned::kBuildIds ||
                         field == pft::Interned::kMappingPaths || field == pft::Interned::kSourcePaths;
    if (!is_text) {
      i.skip();
      continue;
    }
    uint64_t iid = 0;
    std::string text;
    for (pbf_reader t = i.get_message(); t.next();) {
      if (t.tag() == pft::Interned::kIid) iid = t.get_uint64();
      else text = t.get_string();
    }
    define(s.texts[field], iid, text, "a text");
  }
  for (pbf_reader i(bytes); i.next();) i.tag() == pft::Interned::kMappings ? mapping(i.get_message(), s) : i.skip();
  for (pbf_reader i(bytes); i.next();) i.tag() == pft::Interned::kFrames ? frame(i.get_message(), s) : i.skip();
  for (pbf_reader i(bytes); i.next();) i.tag() == pft::Interned::kCallstacks ? callstack(i.get_message(), s) : i.skip();
}

void TraceDecoder::mapping(pbf_reader m, Sequence& s) {
  uint64_t iid = 0;
  Mapping row;
  while (m.next()) {
    switch (m.tag()) {
      case pft::Mapping::kIid: iid = m.get_uint64(); break;
      case pft::Mapping::kBuildId: row.build_id = m.get_uint64(); break;
      case pft::Mapping::kStart: row.start = m.get_uint64(); break;
      case pft::Mapping::kEnd: row.end = m.get_uint64(); break;
      case pft::Mapping::kPath:
        if (m.wire_type() != protozero::pbf_wire_type::varint) broken("packed path ids");
        row.path = m.get_uint64();
        break;
      default: m.skip();
    }
  }
  if (!s.texts[pft::Interned::kMappingPaths].contains(row.path)) broken("a mapping's path is not defined");
  if (row.build_id && !s.texts[pft::Interned::kBuildIds].contains(row.build_id)) broken("a build-id is not defined");
  if (row.end < row.start) broken("a mapping ends before it starts");
  define(s.mappings, iid, row, "mapping");
}

void TraceDecoder::frame(pbf_reader f, Sequence& s) {
  uint64_t iid = 0;
  Frame row;
  while (f.next()) {
    switch (f.tag()) {
      case pft::Frame::kIid: iid = f.get_uint64(); break;
      case pft::Frame::kFunctionName: row.name = f.get_uint64(); break;
      case pft::Frame::kMapping: row.mapping = f.get_uint64(); break;
      case pft::Frame::kRelPc: row.rel_pc = f.get_uint64(); break;
      case pft::Frame::kSourcePath: row.source = f.get_uint64(); break;
      default: f.skip();
    }
  }
  auto name = s.texts[pft::Interned::kFunctionNames].find(row.name);
  if (name == s.texts[pft::Interned::kFunctionNames].end()) broken("a frame's name is not defined");
  else if (name->second.empty()) broken("a frame has an empty name");
  else if (!s.frame_keys.try_emplace({row.mapping, row.rel_pc, name->second}, iid).second)
    shared_keys.push_back(name->second);
  if (!s.mappings.contains(row.mapping)) broken("a frame's mapping is not defined");
  if (row.source && !s.texts[pft::Interned::kSourcePaths].contains(row.source)) broken("a source path is not defined");
  define(s.frames, iid, row, "frame");
}

void TraceDecoder::callstack(pbf_reader c, Sequence& s) {
  uint64_t iid = 0;
  std::vector<uint64_t> frames;
  while (c.next()) {
    if (c.tag() == pft::Callstack::kIid) {
      iid = c.get_uint64();
      continue;
    }
    if (c.wire_type() != protozero::pbf_wire_type::varint) return broken("packed frame ids"), c.skip();
    frames.push_back(c.get_uint64());
    if (!s.frames.contains(frames.back())) broken("a call stack's frame is not defined");
  }
  if (frames.empty()) broken("an empty call stack");
  define(s.callstacks, iid, frames, "call stack");
}

void TraceDecoder::descriptor(pbf_reader d) {
  using namespace pft::TrackDescriptor;
  uint64_t uuid = 0;
  DecodedTrack track;
  while (d.next()) {
    switch (d.tag()) {
      case kUuid: uuid = d.get_uint64(); break;
      case kParentUuid: track.parent = d.get_uint64(); break;
      case kName: track.name = d.get_string(); break;
      case kProcess:
        for (pbf_reader p = d.get_message(); p.next();) {
          if (p.tag() == kProcessPid) track.pid = p.get_int32();
          else if (p.tag() == kProcessName) track.name = p.get_string();
          else p.skip();
        }
        break;
      case kThread:
        for (pbf_reader t = d.get_message(); t.next();) {
          if (t.tag() == kThreadPid) track.pid = t.get_int32();
          else if (t.tag() == kThreadTid) track.tid = t.get_int32();
          else if (t.tag() == kThreadName) track.name = t.get_string();
          else t.skip();
        }
        if (track.pid < 0 || track.tid < 0) broken("a thread without both ids");
        break;
      case kCounter: counter(d.get_message(), track); break;
      default: d.skip();
    }
  }
  if (track.name.empty()) broken("a track without a name");
  if (track.parent && !tracks.contains(track.parent)) broken("a track's parent is not declared before it");
  define(tracks, uuid, track, "track");
}

void TraceDecoder::counter(pbf_reader c, DecodedTrack& track) {
  constexpr std::string_view kUnits[] = {"", "nanoseconds", "count", "bytes"};
  track.is_counter = true;
  while (c.next()) {
    if (c.tag() == pft::CounterDescriptor::kUnit) track.unit = kUnits[c.get_uint32() % std::size(kUnits)];
    else if (c.tag() == pft::CounterDescriptor::kUnitName) track.unit = c.get_string();
    else broken("unknown field of a counter"), c.skip();
  }
}

std::string TraceDecoder::annotation(pbf_reader a) {
  std::string name, text;
  while (a.next()) {
    switch (a.tag()) {
      case pft::DebugAnnotation::kName: name = a.get_string(); break;
      case pft::DebugAnnotation::kString: text = a.get_string(); break;
      case pft::DebugAnnotation::kInt: text = std::to_string(a.get_int64()); break;
      default: broken("unknown field of a debug annotation"), a.skip();
    }
  }
  if (name.empty()) broken("a debug annotation without a name");
  return " " + name + "=" + text;
}

void TraceDecoder::event(pbf_reader e, uint64_t time_ns, bool has_time) {
  using namespace pft::TrackEvent;
  uint64_t track = 0;
  Event row;
  row.time_ns = time_ns;
  while (e.next()) {
    switch (e.tag()) {
      case kType: row.type = e.get_uint32(); break;
      case kTrackUuid: track = e.get_uint64(); break;
      case kName: row.name = e.get_string(); break;
      case kDebugAnnotations: row.note += annotation(e.get_message()); break;
      case kCounterValue: row.value = static_cast<double>(e.get_int64()), row.has_value = true; break;
      case kDoubleValue: row.value = e.get_double(), row.has_value = true; break;
      default: e.skip();
    }
  }
  if (!has_time) broken("an event without a time");
  if (!tracks.contains(track)) broken("an event on a track that is not declared");
  if (row.type < kSliceBegin || row.type > kCounter) broken("an event of another type");
  if (row.name.empty() && (row.type == kSliceBegin || row.type == kInstant)) broken("a slice or mark without a name");
  if (row.has_value != (row.type == kCounter)) broken("a value, but no counter event, or the other way round");
  if ((row.type == kCounter) != tracks[track].is_counter) broken("a value on a track of slices, or the other way round");
  if (row.type == kInstant) marks.push_back({track, time_ns, row.name, row.note});
  else if (row.type == kCounter) values.push_back({track, time_ns, row.value});
  else events_[track].push_back(std::move(row));
}

void TraceDecoder::sample(pbf_reader p, uint64_t time_ns, bool has_time, Sequence& s) {
  DecodedSample row;
  row.time_ns = time_ns;
  uint64_t iid = 0;
  while (p.next()) {
    switch (p.tag()) {
      case pft::PerfSample::kPid: row.pid = static_cast<int32_t>(p.get_uint32()); break;
      case pft::PerfSample::kTid: row.tid = static_cast<int32_t>(p.get_uint32()); break;
      case pft::PerfSample::kCallstack: iid = p.get_uint64(); break;
      default: p.skip();
    }
  }
  if (!has_time) broken("a sample without a time");
  if (!s.callstacks.contains(iid)) return broken("a sample's call stack is not defined");
  for (uint64_t f : s.callstacks[iid]) {
    row.frames.push_back(s.texts[pft::Interned::kFunctionNames][s.frames[f].name]);
    row.mappings.push_back(s.texts[pft::Interned::kMappingPaths][s.mappings[s.frames[f].mapping].path]);
  }
  samples.push_back(std::move(row));
}

// As the importer does: by time, equal times in the file's order; an END closes the newest open slice.
void TraceDecoder::match_slices() {
  for (auto& [track, events] : events_) {
    std::ranges::stable_sort(events, {}, &Event::time_ns);
    std::vector<size_t> open;
    for (const Event& e : events) {
      if (e.type == pft::TrackEvent::kSliceBegin) {
        if (open.size() >= 512) broken("a slice deeper than 512");
        open.push_back(slices.size());
        slices.push_back({track, e.time_ns, 0, open.size() - 1, e.name, e.note});
      } else if (open.empty()) {
        broken("an END without its BEGIN");
      } else {
        slices[open.back()].end_ns = e.time_ns;
        open.pop_back();
      }
    }
    if (!open.empty()) broken("a slice that does not end");
  }
}

void TraceDecoder::check_tracks() {
  std::set<std::pair<int32_t, int32_t>> threads;
  for (const auto& [uuid, track] : tracks)
    if (track.pid >= 0 && !threads.emplace(track.pid, track.tid).second) broken("two tracks of one thread or process");
  for (const DecodedSample& s : samples)
    if (s.tid >= 0 && !threads.contains({s.pid, s.tid})) broken("a sample of a thread that has no track");
}

}  // namespace cprof::format::testing
