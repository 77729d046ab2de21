#include "format/pftrace/track_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace cprof::format {

using profile::ProcessId;
using profile::ThreadId;
using protozero::pbf_writer;

namespace {

void add_text(pbf_writer& w, uint32_t field, std::string_view text) { w.add_string(field, text.data(), text.size()); }

void add_notes(pbf_writer& event, std::span<const TrackWriter::Note> notes) {
  std::string annotation;
  for (const TrackWriter::Note& note : notes) {
    annotation.clear();
    pbf_writer w(annotation);
    if (note.is_number) w.add_int64(pft::DebugAnnotation::kInt, note.number);
    else add_text(w, pft::DebugAnnotation::kString, note.text);
    add_text(w, pft::DebugAnnotation::kName, note.name);
    event.add_message(pft::TrackEvent::kDebugAnnotations, annotation);
  }
}

// An event's fields but for its time.
std::string event_of(uint32_t type, uint64_t track) {
  std::string event;
  pbf_writer w(event);
  w.add_uint32(pft::TrackEvent::kType, type);
  w.add_uint64(pft::TrackEvent::kTrackUuid, track);
  return event;
}

void add_names(pbf_writer& event, std::string_view category, std::string_view name) {
  if (!category.empty()) add_text(event, pft::TrackEvent::kCategories, category);
  add_text(event, pft::TrackEvent::kName, name.empty() ? "[unnamed]" : name);
}

}  // namespace

Result<void> TrackWriter::describe() {
  for (size_t i = 0; i < profile_.processes.size(); ++i) TRY(describe_process(ProcessId(i)));
  thread_tracks_.resize(profile_.threads.size());
  for (size_t i = 0; i < profile_.threads.size(); ++i) TRY(describe_thread(ThreadId(i)));
  return {};
}

// A pid that was used twice is one track: a second uuid would make Perfetto move the samples of both to the last one.
Result<void> TrackWriter::describe_process(ProcessId id) {
  using namespace pft::TrackDescriptor;
  const profile::Process& process = profile_.processes[id.index()];
  auto [it, is_new] = process_tracks_.try_emplace(process.pid, next_uuid_);
  if (!is_new) return {};
  ++next_uuid_;
  std::string text = std::string(profile_.text(process.name));
  if (text.empty()) text = fmt::format("pid {}", process.pid);
  std::string body, descriptor;
  pbf_writer b(body);
  b.add_int32(kProcessPid, process.pid);
  add_text(b, kProcessName, text);
  pbf_writer w(descriptor);
  w.add_uint64(kUuid, it->second);
  w.add_message(kProcess, body);
  return put_descriptor(descriptor);
}

Result<void> TrackWriter::describe_thread(ThreadId id) {
  using namespace pft::TrackDescriptor;
  const profile::Thread& thread = profile_.threads[id.index()];
  const profile::Process* process = thread.process.valid() ? &profile_.processes[thread.process.index()] : nullptr;
  const int32_t pid = process ? process->pid : thread.tid;
  auto [it, is_new] = thread_uuids_.try_emplace({pid, thread.tid}, next_uuid_);
  thread_tracks_[id.index()] = it->second;
  if (!is_new) return {};
  ++next_uuid_;
  std::string text = std::string(profile_.text(thread.name));
  if (text.empty() && process) text = profile_.text(process->name);
  if (text.empty()) text = fmt::format("tid {}", thread.tid);
  std::string body, descriptor;
  pbf_writer b(body);
  b.add_int32(kThreadPid, pid);
  b.add_int32(kThreadTid, thread.tid);
  add_text(b, kThreadName, text);
  pbf_writer w(descriptor);
  w.add_uint64(kUuid, it->second);
  if (process) w.add_uint64(kParentUuid, process_tracks_.at(pid));
  w.add_message(kThread, body);
  return put_descriptor(descriptor);
}

Result<uint64_t> TrackWriter::add_track(ThreadId thread, std::string_view name) { return put_track(track_of(thread), name, {}); }

Result<uint64_t> TrackWriter::add_track(const profile::Track& track, std::string_view name) {
  return put_track(parent_of(track), name, {});
}

Result<uint64_t> TrackWriter::add_counter_track(const profile::Track& track) {
  using namespace pft::CounterDescriptor;
  const std::string_view unit = profile_.text(track.unit);
  std::string counter;
  pbf_writer w(counter);
  if (unit == "nanoseconds") w.add_uint32(kUnit, kTimeNs);
  else if (unit == "count") w.add_uint32(kUnit, kCount);
  else if (unit == "bytes") w.add_uint32(kUnit, kBytes);
  else add_text(w, kUnitName, unit);
  return put_track(parent_of(track), profile_.text(track.name), counter);
}

uint64_t TrackWriter::parent_of(const profile::Track& track) const {
  if (track.thread.valid()) return track_of(track.thread);
  return track.process.valid() ? process_tracks_.at(profile_.processes[track.process.index()].pid) : 0;
}

Result<uint64_t> TrackWriter::put_track(uint64_t parent, std::string_view name, std::string_view counter) {
  using namespace pft::TrackDescriptor;
  const uint64_t uuid = next_uuid_++;
  std::string descriptor;
  pbf_writer w(descriptor);
  w.add_uint64(kUuid, uuid);
  if (parent) w.add_uint64(kParentUuid, parent);
  add_text(w, kName, name.empty() ? "track" : name);
  if (!counter.empty()) w.add_message(kCounter, counter.data(), counter.size());
  TRY(put_descriptor(descriptor));
  return uuid;
}

Result<void> TrackWriter::put_descriptor(std::string_view descriptor) {
  return packets_.put(sequence_, [&](pbf_writer& packet) {
    packet.add_message(pft::Packet::kTrackDescriptor, descriptor.data(), descriptor.size());
  });
}

Result<void> TrackWriter::add_slice(const Slice& slice) {
  if (slice.track != open_track_) {
    TRY(close_all());
    open_track_ = slice.track;
  }
  TRY(close_deeper_than(slice.depth));
  if (slice.depth >= kMaxDepth || slice.depth > open_ends_.size()) {
    ++slices_too_deep_;
    return {};
  }
  // No child outlives its parent.
  uint64_t end_ns = std::max(slice.start_ns, slice.end_ns);
  if (!open_ends_.empty()) end_ns = std::min(end_ns, open_ends_.back());
  std::string event = event_of(pft::TrackEvent::kSliceBegin, slice.track);
  pbf_writer w(event);
  add_names(w, slice.category, slice.name);
  add_notes(w, slice.notes);
  TRY(put_event(slice.start_ns, event));
  open_ends_.push_back(end_ns);
  ++slices_written_;
  return {};
}

Result<void> TrackWriter::close_all() { return close_deeper_than(0); }

Result<void> TrackWriter::close_deeper_than(size_t depth) {
  while (open_ends_.size() > depth) {
    TRY(put_end(open_ends_.back()));
    open_ends_.pop_back();
  }
  return {};
}

Result<void> TrackWriter::put_end(uint64_t time_ns) {
  return put_event(time_ns, event_of(pft::TrackEvent::kSliceEnd, open_track_));
}

Result<void> TrackWriter::add_instant(const Instant& instant) {
  std::string event = event_of(pft::TrackEvent::kInstant, instant.track);
  pbf_writer w(event);
  add_names(w, instant.category, instant.name);
  add_notes(w, instant.notes);
  return put_event(instant.time_ns, event);
}

Result<void> TrackWriter::add_counter_value(uint64_t track, uint64_t time_ns, double value) {
  constexpr double kExact = 9007199254740992;  // 2^53: whole numbers are exact below
  std::string event = event_of(pft::TrackEvent::kCounter, track);
  pbf_writer w(event);
  if (value == std::trunc(value) && std::fabs(value) <= kExact)
    w.add_int64(pft::TrackEvent::kCounterValue, static_cast<int64_t>(value));
  else w.add_double(pft::TrackEvent::kDoubleValue, value);
  return put_event(time_ns, event);
}

Result<void> TrackWriter::put_event(uint64_t time_ns, std::string_view event) {
  return packets_.put(sequence_, [&](pbf_writer& packet) {
    packet.add_uint64(pft::Packet::kTimestamp, time_ns);
    packet.add_message(pft::Packet::kTrackEvent, event.data(), event.size());
  });
}

}  // namespace cprof::format
