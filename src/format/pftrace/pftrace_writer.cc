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
#include "format/values.h"

namespace cprof::format {
namespace {

using profile::Profile;
using profile::ThreadId;

constexpr uint32_t kTrackSequence = 1, kFirstSampleSequence = 2;
constexpr uint64_t kMaxTime = INT64_MAX;  // the importer drops what is later

class PftraceWriter {
 public:
  PftraceWriter(const Profile& profile, OutputFile& out, Diagnostics* losses)
      : profile_(profile), packets_(out), tracks_(profile, kTrackSequence, packets_), losses_(losses) {}

  Result<void> write() {
    TRY(packets_.put_clocks(first_time(), profile_.run.start_realtime_ns));
    TRY(packets_.begin_sequence(kTrackSequence, {}));
    TRY(tracks_.describe());
    TRY(write_given_slices());
    TRY(write_stack_slices());
    TRY(write_states());
    TRY(write_samples());
    count_losses();
    return {};
  }

 private:
  uint64_t first_time() const {
    uint64_t first = profile_.run.start_ns;
    if (first) return std::min(first, kMaxTime);
    if (!profile_.samples.empty()) first = profile_.samples.front().time_ns;
    for (const profile::OffCpuInterval& off : profile_.off_cpu) first = first ? std::min(first, off.start_ns) : off.start_ns;
    return std::min(first, kMaxTime);
  }

  // Slices that a program or an import gave, by thread. Those that do not nest go to a further track.
  Result<void> write_given_slices() {
    std::vector<const profile::Slice*> slices;
    for (const profile::Slice& slice : profile_.slices)
      if (slice.thread.valid()) slices.push_back(&slice);
    std::ranges::stable_sort(slices, [](const profile::Slice* a, const profile::Slice* b) {
      return std::tuple(a->thread, a->start_ns, ~a->duration_ns) < std::tuple(b->thread, b->start_ns, ~b->duration_ns);
    });
    has_given_slices_.resize(profile_.threads.size());
    for (size_t i = 0; i < slices.size();) {
      size_t end = i;
      while (end < slices.size() && slices[end]->thread == slices[i]->thread) ++end;
      TRY(write_lanes(std::span(slices).subspan(i, end - i)));
      i = end;
    }
    return tracks_.close_all();
  }

  struct Lane {
    std::vector<uint64_t> ends;                  // of the open slices
    std::vector<std::pair<const profile::Slice*, uint32_t>> slices;  // and their depths
  };

  // Each slice into the first lane where it lies wholly inside the innermost open one, or after all.
  Result<void> write_lanes(std::span<const profile::Slice* const> slices) {
    std::vector<Lane> lanes;
    for (const profile::Slice* slice : slices) {
      if (slice->start_ns > kMaxTime || slice->duration_ns > kMaxTime - slice->start_ns) {
        ++times_too_late_;
        continue;
      }
      const uint64_t end = slice->start_ns + slice->duration_ns;
      auto fits = [&](Lane& lane) {
        while (!lane.ends.empty() && lane.ends.back() <= slice->start_ns) lane.ends.pop_back();
        return lane.ends.empty() || end <= lane.ends.back();
      };
      auto lane = std::ranges::find_if(lanes, fits);
      if (lane == lanes.end()) lane = lanes.emplace(lanes.end());
      lane->slices.emplace_back(slice, static_cast<uint32_t>(lane->ends.size()));
      lane->ends.push_back(end);
    }
    for (size_t i = 0; i < lanes.size(); ++i) TRY(write_lane(lanes[i], i));
    return {};
  }

  Result<void> write_lane(const Lane& lane, size_t number) {
    const ThreadId thread = lane.slices.front().first->thread;
    has_given_slices_[thread.index()] = true;
    uint64_t track = tracks_.track_of(thread);
    if (number > 0) track = TRY(tracks_.add_track(thread, fmt::format("overlapping ({})", number + 1)));
    for (const auto& [slice, depth] : lane.slices)
      TRY(tracks_.add_slice({track, slice->start_ns, slice->start_ns + slice->duration_ns, depth,
                             profile_.text(slice->name), profile_.text(slice->category)}));
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
    if (slice.end_ns > kMaxTime) {
      ++times_too_late_;
      return {};
    }
    uint64_t& track = stack_tracks[slice.thread.index()];
    if (!track && !has_given_slices_[slice.thread.index()]) track = tracks_.track_of(slice.thread);
    if (!track) track = TRY(tracks_.add_track(slice.thread, "stacks"));
    return tracks_.add_slice({track, slice.start_ns, slice.end_ns, slice.depth,
                              walker.frame(slice.location, slice.line).name, {}});
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
    if (slice.end_ns > kMaxTime) {
      ++times_too_late_;
      return {};
    }
    if (!track) track = TRY(tracks_.add_track(slice.thread, "state"));
    const bool is_on = slice.state == timeline::ThreadState::kOnCpu;
    TrackWriter::Slice out{track, slice.start_ns, slice.end_ns, 0, is_on ? "on CPU" : name_of(slice.wait_class),
                           is_on ? "oncpu" : "offcpu"};
    std::string waker;
    if (slice.interval != timeline::StateSlice::kNoInterval) {
      const profile::OffCpuInterval& off = profile_.off_cpu[slice.interval];
      if (off.waker.valid()) {
        const profile::Thread& thread = profile_.threads[off.waker.index()];
        waker = fmt::format("{} {}", profile_.text(thread.name), thread.tid);
        out.note_name = "waker";
        out.note = waker;
      }
    }
    return tracks_.add_slice(out);
  }

  Result<void> write_samples() {
    const AddressBook book(profile_, used_locations(profile_));
    std::vector<std::unique_ptr<SampleSequence>> sequences(profile_.metrics.size());
    for (const profile::Sample& sample : profile_.samples) {
      if (sample.time_ns > kMaxTime) {
        ++times_too_late_;
        continue;
      }
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
                   "samples and slices at times of 2^63 ns or later were not written", times_too_late_);
  }

  const Profile& profile_;
  PacketWriter packets_;
  TrackWriter tracks_;
  Diagnostics* losses_;
  std::vector<bool> has_given_slices_;
  uint64_t times_too_late_ = 0;
};

}  // namespace

Result<void> write_pftrace(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  if (!profile.timed() && profile.slices.empty())
    return fail(fmt::format("{}: this profile has no times, and a Perfetto trace is a timeline; write .pb.gz, which "
                            "Perfetto shows as a flame graph", out.path()));
  return PftraceWriter(profile, out, options.losses).write();
}

}  // namespace cprof::format
