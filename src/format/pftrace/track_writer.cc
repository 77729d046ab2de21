#include "format/pftrace/track_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace cprof::format {

using profile::ProcessId;
using profile::ThreadId;
using protozero::pbf_writer;

namespace {

void add_text(pbf_writer& w, uint32_t field, std::string_view text) { w.add_string(field, text.data(), text.size()); }

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

Result<uint64_t> TrackWriter::add_track(ThreadId thread, std::string_view name) {
  using namespace pft::TrackDescriptor;
  const uint64_t uuid = next_uuid_++;
  std::string descriptor;
  pbf_writer w(descriptor);
  w.add_uint64(kUuid, uuid);
  w.add_uint64(kParentUuid, track_of(thread));
  add_text(w, kName, name);
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
  TRY(packets_.put(sequence_, [&](pbf_writer& packet) {
    std::string event;
    pbf_writer w(event);
    w.add_uint32(pft::TrackEvent::kType, pft::TrackEvent::kSliceBegin);
    w.add_uint64(pft::TrackEvent::kTrackUuid, slice.track);
    if (!slice.category.empty()) add_text(w, pft::TrackEvent::kCategories, slice.category);
    add_text(w, pft::TrackEvent::kName, slice.name);
    if (!slice.note_name.empty()) {
      std::string annotation;
      pbf_writer note(annotation);
      add_text(note, pft::DebugAnnotation::kString, slice.note);
      add_text(note, pft::DebugAnnotation::kName, slice.note_name);
      w.add_message(pft::TrackEvent::kDebugAnnotations, annotation);
    }
    packet.add_uint64(pft::Packet::kTimestamp, slice.start_ns);
    packet.add_message(pft::Packet::kTrackEvent, event);
  }));
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
  return packets_.put(sequence_, [&](pbf_writer& packet) {
    std::string event;
    pbf_writer w(event);
    w.add_uint32(pft::TrackEvent::kType, pft::TrackEvent::kSliceEnd);
    w.add_uint64(pft::TrackEvent::kTrackUuid, open_track_);
    packet.add_uint64(pft::Packet::kTimestamp, time_ns);
    packet.add_message(pft::Packet::kTrackEvent, event);
  });
}

}  // namespace cprof::format
