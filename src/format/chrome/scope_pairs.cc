#include "format/chrome/scope_pairs.h"

#include <algorithm>
#include <queue>
#include <span>

namespace cprof::format::chrome {
namespace {

using profile::Label;
using profile::LabelSetId;
using profile::Profile;
using profile::Slice;
using profile::ThreadId;
using profile::TrackId;

constexpr size_t kSearched = 1024;  // open slices among which an end looks for its name

}  // namespace

uint32_t LanePairs::begin(const Edge& edge) {
  auto& slices = builder_.profile().slices;
  const auto row = static_cast<uint32_t>(slices.size());
  slices.push_back({.name = edge.name,
                    .category = edge.category,
                    .start_ns = static_cast<uint64_t>(edge.time_ns),
                    .labels = edge.labels});
  open_.push_back({row, edge.name});
  return row;
}

void LanePairs::end(const Edge& edge) {
  auto found = open_.rbegin();
  const auto last = open_.size() > kSearched ? open_.rbegin() + kSearched : open_.rend();
  if (edge.name != profile::kNoText) found = std::find_if(found, last, [&](const Open& o) { return o.name == edge.name; });
  if (found == last) {
    ++counts_.unmatched_ends;
    return;
  }
  const bool is_newest = found == open_.rbegin();
  const bool is_told = edge.name != profile::kNoText || open_.size() == 1;
  counts_.not_nested += !is_newest || !is_told;
  Slice& slice = builder_.profile().slices[found->row];
  slice.duration_ns = static_cast<uint64_t>(edge.time_ns) - slice.start_ns;
  add_labels(slice, edge.labels);
  open_.erase(std::next(found).base());
}

void LanePairs::add_labels(Slice& slice, LabelSetId more) {
  if (!more.valid() || !slice.labels.valid()) {
    slice.labels = more.valid() ? more : slice.labels;
    return;
  }
  const Profile& profile = builder_.profile();
  std::vector<Label> labels;
  for (LabelSetId id : {slice.labels, more}) {
    const auto [first, count] = profile.label_sets[id.index()];
    labels.insert(labels.end(), profile.labels.begin() + first, profile.labels.begin() + first + count);
  }
  slice.labels = builder_.label_set(labels);
}

void LanePairs::close_all() {
  for (const Open& open : open_) {
    Slice& slice = builder_.profile().slices[open.row];
    slice.duration_ns = static_cast<uint64_t>(end_of_trace_) - slice.start_ns;
    slice.is_open = true;
  }
  counts_.open += open_.size();
  open_.clear();
}

std::vector<uint32_t> in_lanes(const std::vector<Edge>& edges, size_t lanes) {
  std::vector<uint32_t> next(lanes + 1);
  for (const Edge& edge : edges) ++next[edge.lane + 1];
  for (size_t i = 1; i <= lanes; ++i) next[i] += next[i - 1];
  std::vector<uint32_t> rows(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) rows[next[edges[i].lane]++] = static_cast<uint32_t>(i);
  auto by_time = [&](uint32_t a, uint32_t b) { return edges[a].time_ns < edges[b].time_ns; };
  for (size_t i = 0; i < lanes; ++i) {
    const auto first = rows.begin() + (i ? next[i - 1] : 0), last = rows.begin() + next[i];
    if (!std::is_sorted(first, last, by_time)) std::stable_sort(first, last, by_time);
  }
  return rows;
}

void pair_threads(profile::ProfileBuilder& builder, const std::vector<Edge>& edges, int64_t end_of_trace,
                  PairCounts& counts) {
  LanePairs pairs(builder, end_of_trace, counts);
  uint32_t lane = 0;
  for (uint32_t row : in_lanes(edges, builder.profile().threads.size())) {
    const Edge& edge = edges[row];
    if (edge.lane != lane) pairs.close_all();
    lane = edge.lane;
    if (edge.kind == Edge::Kind::kEnd) pairs.end(edge);
    else builder.profile().slices[pairs.begin(edge)].thread = ThreadId(lane);
  }
  pairs.close_all();
}

void AsyncTracks::add(const Key& key, Edge edge) {
  auto [it, is_new] = lane_of_.try_emplace(key, static_cast<uint32_t>(keys_.size()));
  if (is_new) keys_.push_back(key);
  edge.lane = it->second;
  edges_.push_back(edge);
}

void AsyncTracks::pair(int64_t end_of_trace, PairCounts& counts) {
  Profile& profile = builder_.profile();
  const size_t first_slice = profile.slices.size(), first_mark = profile.marks.size();
  const std::vector<uint32_t> rows = in_lanes(edges_, keys_.size());
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    while (end < rows.size() && edges_[rows[end]].lane == edges_[rows[i]].lane) ++end;
    pair_lane(std::span(rows).subspan(i, end - i), end_of_trace, counts);
    i = end;
  }
  give_tracks();
  for (size_t i = first_slice; i < profile.slices.size(); ++i)
    profile.slices[i].track = activities_[profile.slices[i].track.index()].track;
  for (size_t i = first_mark; i < profile.marks.size(); ++i)
    profile.marks[i].track = activities_[profile.marks[i].track.index()].track;
}

// Until the tracks are given, `track` is the number of the activity.
void AsyncTracks::pair_lane(std::span<const uint32_t> rows, int64_t end_of_trace, PairCounts& counts) {
  Profile& profile = builder_.profile();
  LanePairs pairs(builder_, end_of_trace, counts);
  for (uint32_t row : rows) {
    const Edge& edge = edges_[row];
    if (edge.kind == Edge::Kind::kEnd) {
      if (!pairs.empty()) activities_.back().end_ns = std::max(activities_.back().end_ns, edge.time_ns);
      pairs.end(edge);
      continue;
    }
    if (pairs.empty()) begin_activity(edge);
    const TrackId activity(activities_.size() - 1);
    if (edge.kind == Edge::Kind::kBegin) profile.slices[pairs.begin(edge)].track = activity;
    else
      profile.marks.push_back({.name = edge.name,
                               .category = edge.category,
                               .time_ns = static_cast<uint64_t>(edge.time_ns),
                               .track = activity,
                               .labels = edge.labels});
  }
  if (!pairs.empty()) activities_.back().end_ns = end_of_trace;
  pairs.close_all();
}

void AsyncTracks::begin_activity(const Edge& edge) {
  const Key& key = keys_[edge.lane];
  const bool has_scope = key.scope != profile::kNoText;
  const PoolKey pool{key.process, has_scope ? profile::kNoText : edge.category, has_scope ? key.scope : edge.name};
  auto [it, is_new] = pools_.try_emplace(pool, static_cast<uint32_t>(pool_keys_.size()));
  if (is_new) pool_keys_.push_back(pool);
  activities_.push_back({.pool = it->second, .start_ns = edge.time_ns, .end_ns = edge.time_ns});
}

void AsyncTracks::give_tracks() {
  Profile& profile = builder_.profile();
  std::vector<uint32_t> order(activities_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    return std::pair(activities_[a].pool, activities_[a].start_ns) < std::pair(activities_[b].pool, activities_[b].start_ns);
  });
  using Free = std::pair<int64_t, TrackId>;
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  uint32_t pool = 0;
  for (uint32_t row : order) {
    Activity& activity = activities_[row];
    if (activity.pool != pool) free = {};
    pool = activity.pool;
    if (!free.empty() && free.top().first <= activity.start_ns) {
      activity.track = free.top().second;
      free.pop();
    } else {
      const PoolKey& key = pool_keys_[pool];
      activity.track = TrackId(profile.tracks.size());
      profile.tracks.push_back({.name = key.name, .process = key.process});
    }
    free.emplace(activity.end_ns, activity.track);
  }
}

}  // namespace cprof::format::chrome
