// A slice goes to the first lane where it lies wholly inside the innermost slice that is open, or where all have ended.
// Lanes that are searched are few: input that overlaps without end goes on to flat lanes, which are found by the time
// when they get free, so that the work stays n log n whatever the input.
#include "timeline/slice_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace cprof::timeline {
namespace {

using profile::CallSiteId;
using profile::LocationId;
using profile::Profile;
using profile::Slice;
using profile::ThreadId;
using profile::TrackId;

constexpr size_t kSearchedLanes = 32;
constexpr uint32_t kDeepestStack = 1024;  // of slices: each more would be written once for every slice below it

uint64_t end_of(const Slice& slice) {
  uint64_t end = 0;
  return __builtin_add_overflow(slice.start_ns, slice.duration_ns, &end) ? UINT64_MAX : end;
}

// Threads before tracks.
uint64_t owner_of(const Slice& slice) {
  return slice.track.valid() ? uint64_t{1} << 32 | slice.track.value : slice.thread.value;
}

bool comes_before(const Slice& a, const Slice& b) {
  return std::tuple(owner_of(a), a.start_ns, ~a.duration_ns) < std::tuple(owner_of(b), b.start_ns, ~b.duration_ns);
}

// The lanes of one owner.
class Lanes {
 public:
  explicit Lanes(std::vector<LaneSlice>& placed) : placed_(placed) {}

  void place(uint32_t row, const Slice& slice) {
    const uint64_t end = end_of(slice);
    for (size_t i = 0; i < searched_.size(); ++i)
      if (fits(searched_[i], slice.start_ns, end)) return put(row, searched_[i], static_cast<uint32_t>(i), end);
    if (searched_.size() < kSearchedLanes) {
      searched_.emplace_back();
      return put(row, searched_.back(), static_cast<uint32_t>(searched_.size() - 1), end);
    }
    uint32_t lane = static_cast<uint32_t>(kSearchedLanes + flat_.size());
    if (!flat_.empty() && flat_.top().first <= slice.start_ns) {
      lane = flat_.top().second;
      flat_.pop();
    }
    flat_.emplace(end, lane);
    placed_.push_back({row, lane, 0, LaneSlice::kNone});
  }

 private:
  struct Open {
    uint64_t end_ns;
    uint32_t at;  // in placed_
  };
  using Lane = std::vector<Open>;
  using EndAndLane = std::pair<uint64_t, uint32_t>;

  static bool fits(Lane& lane, uint64_t start, uint64_t end) {
    while (!lane.empty() && lane.back().end_ns <= start) lane.pop_back();
    return lane.empty() || end <= lane.back().end_ns;
  }

  void put(uint32_t row, Lane& lane, uint32_t number, uint64_t end) {
    const auto at = static_cast<uint32_t>(placed_.size());
    placed_.push_back({row, number, static_cast<uint32_t>(lane.size()), lane.empty() ? LaneSlice::kNone : lane.back().at});
    lane.push_back({end, at});
  }

  std::vector<LaneSlice>& placed_;
  std::vector<Lane> searched_;
  std::priority_queue<EndAndLane, std::vector<EndAndLane>, std::greater<>> flat_;
};

// Owner by owner in one go, then each by time: most inputs are in order there already.
std::vector<uint32_t> in_order(const Profile& profile) {
  const std::vector<Slice>& slices = profile.slices;
  const size_t threads = profile.threads.size();
  auto owner = [&](const Slice& slice) { return slice.track.valid() ? threads + slice.track.index() : slice.thread.index(); };
  std::vector<uint32_t> next(threads + profile.tracks.size() + 1);
  for (const Slice& slice : slices) ++next[owner(slice) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<uint32_t> order(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) order[next[owner(slices[i])]++] = static_cast<uint32_t>(i);
  auto before = [&](uint32_t a, uint32_t b) { return comes_before(slices[a], slices[b]); };
  for (size_t i = 0; i + 1 < next.size(); ++i) {
    const auto first = order.begin() + (i ? next[i - 1] : 0), last = order.begin() + next[i];
    if (!std::is_sorted(first, last, before)) std::stable_sort(first, last, before);
  }
  return order;
}

// Rows in that order, in place: each cycle of the permutation once.
template <typename Row>
void permute(std::vector<Row>& rows, std::vector<uint32_t> order) {
  for (uint32_t start = 0; start < order.size() && !rows.empty(); ++start) {
    if (order[start] == start) continue;
    const Row first = rows[start];
    uint32_t at = start;
    while (order[at] != start) {
      const uint32_t from = order[at];
      rows[at] = rows[from];
      order[at] = at;
      at = from;
    }
    rows[at] = first;
    order[at] = at;
  }
}

void put_in_order(Profile& profile, std::vector<CallSiteId>& beside) {
  const std::vector<uint32_t> order = in_order(profile);
  permute(profile.slices, order);
  permute(beside, order);
}

// The tracks beside those of threads and tracks, made when first asked for.
class FurtherTracks {
 public:
  explicit FurtherTracks(Profile& profile) : profile_(profile) {}

  TrackId of(const Slice& slice, uint32_t lane) {
    auto [it, is_new] = tracks_.try_emplace({owner_of(slice), lane}, TrackId(profile_.tracks.size()));
    if (!is_new) return it->second;
    profile::Track track;
    if (slice.track.valid()) track = profile_.tracks[slice.track.index()];
    if (slice.thread.valid()) {
      track.thread = slice.thread;
      track.process = profile_.threads[slice.thread.index()].process;
    }
    const std::string_view name = slice.track.valid() ? profile_.text(track.name) : "overlapping";
    track.name = profile_.strings.intern(fmt::format("{} ({})", name, lane + 1));
    profile_.tracks.push_back(track);
    return it->second;
  }

 private:
  Profile& profile_;
  std::map<std::pair<uint64_t, uint32_t>, TrackId> tracks_;
};

class StackMaker {
 public:
  StackMaker(profile::ProfileBuilder& builder, std::span<const CallSiteId> callers)
      : builder_(builder), profile_(builder.profile()), callers_(callers) {
    metric_ = builder_.add_metric(kSliceMetric, "nanoseconds");
    profile_.run.default_metric = profile_.metrics[metric_.index()].name;
    for (size_t i = profile_.threads.size(); i-- > 0;)
      if (auto process = profile_.threads[i].process; process.valid()) {
        first_thread_.resize(std::max(first_thread_.size(), process.index() + 1));
        first_thread_[process.index()] = ThreadId(i);
      }
  }

  void run() {
    const std::vector<LaneSlice> lanes = slice_lanes(profile_);
    std::vector<uint64_t> in_children(lanes.size());
    for (const LaneSlice& lane : lanes)
      if (lane.parent != LaneSlice::kNone) in_children[lane.parent] += profile_.slices[lane.slice].duration_ns;
    std::vector<CallSiteId> sites(lanes.size());
    uint64_t too_deep = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      const Slice& slice = profile_.slices[lanes[i].slice];
      const CallSiteId around = lanes[i].parent == LaneSlice::kNone ? CallSiteId() : sites[lanes[i].parent];
      const CallSiteId parent = caller_of(lanes[i].slice).valid() ? caller_of(lanes[i].slice) : around;
      const bool is_deep = lanes[i].depth >= kDeepestStack;
      sites[i] = is_deep ? parent : builder_.site(parent, location_of(slice.name));
      too_deep += is_deep;
      const uint64_t self = slice.duration_ns - std::min(slice.duration_ns, in_children[i]);
      builder_.add_aggregate({.site = sites[i],
                              .metric = metric_,
                              .value = static_cast<int64_t>(std::min<uint64_t>(self, INT64_MAX)),
                              .thread = thread_of(slice),
                              .end = profile::StackEnd::kNotUnwound});
    }
    if (too_deep)
      profile_.diagnostics.add("slices_too_deep", Severity::kDataLoss,
                               "slices nested deeper than 1,024 count on the stack of the one that deep", too_deep);
  }

 private:
  CallSiteId caller_of(uint32_t slice) const { return slice < callers_.size() ? callers_[slice] : CallSiteId(); }

  LocationId location_of(StringId name) {
    if (name.index() >= locations_.size()) locations_.resize(name.index() + 1);
    LocationId& location = locations_[name.index()];
    if (!location.valid()) {
      const profile::Line line{builder_.function({.name = name, .system_name = name})};
      location = builder_.named_location({}, profile::FrameKind::kUser, {&line, 1});
    }
    return location;
  }

  ThreadId thread_of(const Slice& slice) {
    if (slice.thread.valid() || !slice.track.valid()) return slice.thread;
    const profile::Track& track = profile_.tracks[slice.track.index()];
    if (track.thread.valid()) return track.thread;
    if (!track.process.valid()) return {};
    if (track.process.index() >= first_thread_.size()) first_thread_.resize(track.process.index() + 1);
    ThreadId& first = first_thread_[track.process.index()];
    const profile::Process& process = profile_.processes[track.process.index()];
    if (!first.valid()) first = builder_.add_thread(track.process, process.pid, profile_.text(process.name));
    return first;
  }

  profile::ProfileBuilder& builder_;
  Profile& profile_;
  std::span<const CallSiteId> callers_;
  profile::MetricId metric_;
  std::vector<LocationId> locations_;  // by name
  std::vector<ThreadId> first_thread_;  // by process
};

}  // namespace

std::vector<LaneSlice> slice_lanes(const Profile& profile) {
  const std::vector<Slice>& slices = profile.slices;
  const std::vector<uint32_t> order = in_order(profile);
  std::vector<LaneSlice> placed;
  placed.reserve(order.size());
  for (size_t i = 0; i < order.size();) {
    const uint64_t owner = owner_of(slices[order[i]]);
    Lanes lanes(placed);
    for (; i < order.size() && owner_of(slices[order[i]]) == owner; ++i) lanes.place(order[i], slices[order[i]]);
  }
  return placed;
}

uint64_t nest_slices(Profile& profile) {
  std::vector<CallSiteId> nothing;
  return nest_slices(profile, nothing);
}

uint64_t nest_slices(Profile& profile, std::vector<CallSiteId>& beside) {
  put_in_order(profile, beside);
  FurtherTracks further(profile);
  uint64_t moved = 0;
  for (const LaneSlice& lane : slice_lanes(profile)) {
    Slice& slice = profile.slices[lane.slice];
    slice.depth = lane.depth;
    if (lane.lane == 0) continue;
    slice.track = further.of(slice, lane.lane);
    slice.thread = {};
    ++moved;
  }
  if (moved) put_in_order(profile, beside);
  return moved;
}

void add_slice_stacks(profile::ProfileBuilder& builder, std::span<const CallSiteId> callers) {
  Profile& profile = builder.profile();
  if (profile.slices.empty() || !profile.samples.empty() || !profile.aggregates.empty() || !profile.off_cpu.empty()) return;
  StackMaker(builder, callers).run();
  if (std::ranges::all_of(profile.slices, [](const Slice& slice) { return slice.duration_ns == 0; }))
    profile.diagnostics.add("slices_without_duration", Severity::kError,
                            "every slice begins and ends at the same time, so there is no time to show",
                            profile.slices.size());
}

}  // namespace cprof::timeline
