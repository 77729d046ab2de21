// Tracks of a Perfetto trace and what lies on them: descriptors of processes, threads and further tracks, BEGIN and END
// events that nest on every track whatever the slices given do, instants and counter values. Used by the pftrace writer.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "format/pftrace/packet_writer.h"
#include "profile/profile.h"

namespace cprof::format {

class TrackWriter {
 public:
  static constexpr uint32_t kMaxDepth = 512;  // Perfetto drops what lies deeper

  TrackWriter(const profile::Profile& profile, uint32_t sequence, PacketWriter& packets)
      : profile_(profile), sequence_(sequence), packets_(packets) {}

  // All processes and threads; before any slice.
  Result<void> describe();

  uint64_t track_of(profile::ThreadId thread) const { return thread_tracks_[thread.index()]; }
  // A further track below a thread's; a track of the profile, below its thread or process or at the top.
  Result<uint64_t> add_track(profile::ThreadId thread, std::string_view name);
  Result<uint64_t> add_track(const profile::Track& track, std::string_view name);
  Result<uint64_t> add_counter_track(const profile::Track& track);

  // A debug annotation.
  struct Note {
    std::string_view name, text;
    int64_t number = 0;
    bool is_number = false;
  };

  // Slices of one track, by start and then depth; close_all() ends the last ones.
  struct Slice {
    uint64_t track = 0, start_ns = 0, end_ns = 0;
    uint32_t depth = 0;
    std::string_view name, category;
    std::span<const Note> notes = {};
  };
  Result<void> add_slice(const Slice& slice);
  Result<void> close_all();

  struct Instant {
    uint64_t track = 0, time_ns = 0;
    std::string_view name, category;
    std::span<const Note> notes = {};
  };
  Result<void> add_instant(const Instant& instant);
  Result<void> add_counter_value(uint64_t track, uint64_t time_ns, double value);

  uint64_t slices_written() const { return slices_written_; }
  uint64_t slices_too_deep() const { return slices_too_deep_; }

 private:
  Result<void> describe_process(profile::ProcessId id);
  Result<void> describe_thread(profile::ThreadId id);
  Result<uint64_t> put_track(uint64_t parent, std::string_view name, std::string_view counter);
  Result<void> put_descriptor(std::string_view descriptor);
  uint64_t parent_of(const profile::Track& track) const;
  Result<void> put_event(uint64_t time_ns, std::string_view event);
  Result<void> close_deeper_than(size_t depth);
  Result<void> put_end(uint64_t time_ns);

  const profile::Profile& profile_;
  uint32_t sequence_;
  PacketWriter& packets_;
  std::map<int32_t, uint64_t> process_tracks_;                    // by pid
  std::map<std::pair<int32_t, int32_t>, uint64_t> thread_uuids_;  // by pid and tid: one uuid each
  std::vector<uint64_t> thread_tracks_;                           // by ThreadId
  uint64_t next_uuid_ = 1;
  uint64_t open_track_ = 0;
  std::vector<uint64_t> open_ends_;                               // of open_track_, outermost first
  uint64_t slices_written_ = 0, slices_too_deep_ = 0;
};

}  // namespace cprof::format
