#include "format/chrome/async_tracks.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace cprof::format::chrome {

using profile::Profile;
using profile::TrackId;

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
