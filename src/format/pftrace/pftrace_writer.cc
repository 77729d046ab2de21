// A trace is a sequence of packets. Sequence 1 holds the tracks and slices; each metric's samples have a sequence of
// their own, since a sequence has one timebase. A thread's track shows the scopes that the program gave when it gave
// any, and its stacks go to a track below; else the stacks are the thread's track.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analyze/frames.h"
#include "analyze/weights.h"
#include "format/address_book.h"
#include "format/pftrace/packet_writer.h"
#include "format/pftrace/pftrace.h"
#include "format/pftrace/sample_sequence.h"
#include "format/pftrace/track_writer.h"
#include "format/timeline_check.h"
#include "format/values.h"
#include "timeline/slice_lanes.h"

namespace cprof::format {
namespace {

using profile::Profile;
using profile::ThreadId;

constexpr uint32_t kTrackSequence = 1, kFirstSampleSequence = 2;
constexpr uint64_t kMaxTime = INT64_MAX;  // the importer drops what is later

class PftraceWriter {
 public:
  PftraceWriter(const Profile& profile, OutputFile& out, Diagnostics* losses)
      : profile_(profile), packets_(out), tracks_(profile, kTrackSequence, packets_), losses_(losses), given_tracks_(profile.tracks.size()) {}

  Result<void> write() {
    TRY(packets_.put_clocks(first_time(), profile_.run.start_realtime_ns));
    TRY(packets_.begin_sequence(kTrackSequence, {}));
    TRY(tracks_.describe());
    TRY(write_given_slices());
    TRY(write_stack_slices());
    TRY(write_states());
    TRY(write_marks());
    TRY(write_counters());
    TRY(write_samples());
    count_losses();
    return {};
  }

 private:
  uint64_t first_time() const {
    uint64_t first = profile_.run.start_ns;
    if (first) return std::min(first, kMaxTime);
    if (!profile_.samples.empty()) first = profile_.samples.front().time_ns;
    const auto earlier = [&](uint64_t time_ns) { first = first ? std::min(first, time_ns) : time_ns; };
    for (const profile::OffCpuInterval& off : profile_.off_cpu) earlier(off.start_ns);
    for (const profile::Slice& slice : profile_.slices) earlier(slice.start_ns);
    return std::min(first, kMaxTime);
  }

  bool is_too_late(uint64_t start_ns, uint64_t duration_ns = 0) {
    const bool is_late = start_ns > kMaxTime || duration_ns > kMaxTime - start_ns;
    times_too_late_ += is_late;
    return is_late;
  }

  // Slices that a program or an import gave, each lane on a track. A slice without an end ends where the trace does, and
  // says so in an annotation: a BEGIN without its END fills the track for ever.
  Result<void> write_given_slices() {
    std::vector<timeline::LaneSlice> lanes = timeline::slice_lanes(profile_);
    std::ranges::stable_sort(lanes, {}, [&](const timeline::LaneSlice& lane) {
      const profile::Slice& slice = profile_.slices[lane.slice];
      return std::tuple(slice.track.valid(), slice.track.valid() ? slice.track.value : slice.thread.value, lane.lane);
    });
    has_given_slices_.resize(profile_.threads.size());
    const profile::Slice* last = nullptr;
    uint32_t last_lane = 0;
    uint64_t track = 0;
    for (const timeline::LaneSlice& lane : lanes) {
      const profile::Slice& slice = profile_.slices[lane.slice];
      const bool is_same = last && last->track == slice.track && last->thread == slice.thread && last_lane == lane.lane;
      if (!is_same) track = TRY(track_of(slice, lane.lane));
      last = &slice;
      last_lane = lane.lane;
      if (is_too_late(slice.start_ns, slice.duration_ns)) continue;
      notes_of(slice.labels);
      if (slice.is_open) notes_.push_back({.name = kUnfinishedNote, .text = "true"});
      TRY(tracks_.add_slice({track, slice.start_ns, slice.start_ns + slice.duration_ns, lane.depth,
                             profile_.text(slice.name), profile_.text(slice.category), notes_}));
    }
    return tracks_.close_all();
  }

  Result<uint64_t> track_of(const profile::Slice& slice, uint32_t lane) {
    if (!slice.track.valid()) {
      has_given_slices_[slice.thread.index()] = true;
      if (lane == 0) return tracks_.track_of(slice.thread);
      return tracks_.add_track(slice.thread, fmt::format("overlapping ({})", lane + 1));
    }
    if (lane == 0) return track_of(slice.track);
    const profile::Track& track = profile_.tracks[slice.track.index()];
    return tracks_.add_track(track, fmt::format("{} ({})", profile_.text(track.name), lane + 1));
  }

  // Of slices and marks; declared when the first of them comes.
  Result<uint64_t> track_of(profile::TrackId id) {
    uint64_t& uuid = given_tracks_[id.index()];
    const profile::Track& track = profile_.tracks[id.index()];
    if (!uuid) uuid = TRY(tracks_.add_track(track, profile_.text(track.name)));
    return uuid;
  }

  void notes_of(profile::LabelSetId id) {
    notes_.clear();
    for (const profile::Label& label : profile_.labels_of(id))
      notes_.push_back({profile_.text(label.key), profile_.text(label.text), label.number, label.is_number});
  }

  Result<void> write_marks() {
    for (const profile::Mark& mark : profile_.marks) {
      if (is_too_late(mark.time_ns)) continue;
      const uint64_t track = mark.track.valid() ? TRY(track_of(mark.track)) : tracks_.track_of(mark.thread);
      notes_of(mark.labels);
      TRY(tracks_.add_instant({track, mark.time_ns, profile_.text(mark.name), profile_.text(mark.category), notes_}));
    }
    return {};
  }

  Result<void> write_counters() {
    std::vector<uint64_t> tracks(profile_.tracks.size());
    for (const profile::CounterValue& value : profile_.counters) {
      if (is_too_late(value.time_ns)) continue;
      uint64_t& track = tracks[value.track.index()];
      if (!track) track = TRY(tracks_.add_counter_track(profile_.tracks[value.track.index()]));
      TRY(tracks_.add_counter_value(track, value.time_ns, value.value));
    }
    return {};
  }

  Result<void> write_stack_slices() {
    if (!profile_.timed()) return {};
    analyze::FrameWalker walker(profile_);
    std::vector<uint64_t> stack_tracks(profile_.threads.size());
    Result<void> result;
    timeline::for_each_slice(profile_, timeline_options(profile_, analyze::default_metric(profile_)),
                             [&](const timeline::FrameSlice& slice) {
                               if (result) result = write_stack_slice(slice, walker, stack_tracks);
                             });
    TRY(result);
    return tracks_.close_all();
  }

  Result<void> write_stack_slice(const timeline::FrameSlice& slice, analyze::FrameWalker& walker,
                                 std::vector<uint64_t>& stack_tracks) {
    if (!slice.thread.valid()) return {};
    if (is_too_late(slice.end_ns)) return {};
    uint64_t& track = stack_tracks[slice.thread.index()];
    if (!track && !has_given_slices_[slice.thread.index()]) track = tracks_.track_of(slice.thread);
    if (!track) track = TRY(tracks_.add_track(slice.thread, "stacks"));
    return tracks_.add_slice({track, slice.start_ns, slice.end_ns, slice.depth,
                              walker.frame(slice.location, slice.line).name, kSampledCategory});
  }

  // What each thread did, on a track below its own: "on CPU", and off it the class of the wait. Only for recordings that
  // tell it; else a lane of "unknown" would stand below every thread.
  Result<void> write_states() {
    if (profile_.off_cpu.empty()) return {};
    std::vector<uint64_t> tracks(profile_.threads.size());
    Result<void> result;
    timeline::for_each_state(profile_, [&](const timeline::StateSlice& slice) {
      if (result) result = write_state(slice, tracks[slice.thread.index()]);
    });
    TRY(result);
    return tracks_.close_all();
  }

  Result<void> write_state(const timeline::StateSlice& slice, uint64_t& track) {
    if (slice.state == timeline::ThreadState::kUnknown) return {};
    if (is_too_late(slice.end_ns)) return {};
    if (!track) track = TRY(tracks_.add_track(slice.thread, "state"));
    const bool is_on = slice.state == timeline::ThreadState::kOnCpu;
    TrackWriter::Slice out{track, slice.start_ns, slice.end_ns, 0, is_on ? "on CPU" : name_of(slice.wait_class),
                           is_on ? "oncpu" : "offcpu"};
    std::string waker;
    TrackWriter::Note note;
    if (slice.interval != timeline::StateSlice::kNoInterval) {
      const profile::OffCpuInterval& off = profile_.off_cpu[slice.interval];
      if (off.waker.valid()) {
        const profile::Thread& thread = profile_.threads[off.waker.index()];
        waker = fmt::format("{} {}", profile_.text(thread.name), thread.tid);
        note = {.name = "waker", .text = waker};
        out.notes = {&note, 1};
      }
    }
    return tracks_.add_slice(out);
  }

  Result<void> write_samples() {
    const AddressBook book(profile_, used_locations(profile_));
    std::vector<std::unique_ptr<SampleSequence>> sequences(profile_.metrics.size());
    for (const profile::Sample& sample : profile_.samples) {
      if (is_too_late(sample.time_ns)) continue;
      auto& sequence = sequences[sample.metric.index()];
      if (!sequence) {
        const auto id = static_cast<uint32_t>(kFirstSampleSequence + sample.metric.index());
        sequence = std::make_unique<SampleSequence>(profile_, book, sample.metric, id, packets_);
        TRY(sequence->begin());
      }
      TRY(sequence->write(sample));
    }
    return {};
  }

  void count_losses() {
    if (!losses_) return;
    if (tracks_.slices_too_deep())
      losses_->add("pftrace_slices_too_deep", Severity::kDataLoss,
                   "slices nested deeper than 512, the limit of Perfetto, were not written as slices; their samples hold "
                   "the whole stack", tracks_.slices_too_deep());
    if (times_too_late_)
      losses_->add("pftrace_times_too_late", Severity::kDataLoss,
                   "samples, slices, marks and counter values at times of 2^63 ns or later were not written", times_too_late_);
  }

  const Profile& profile_;
  PacketWriter packets_;
  TrackWriter tracks_;
  Diagnostics* losses_;
  std::vector<bool> has_given_slices_;
  std::vector<uint64_t> given_tracks_;  // uuids by TrackId; 0: not declared yet
  std::vector<TrackWriter::Note> notes_;
  uint64_t times_too_late_ = 0;
};

}  // namespace

Result<void> write_pftrace(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  if (!is_timeline(profile))
    return fail(fmt::format("{}: this profile has no times, and a Perfetto trace is a timeline; write .pb.gz, which "
                            "Perfetto shows as a flame graph", out.path()));
  return PftraceWriter(profile, out, options.losses).write();
}

}  // namespace cprof::format
