// Asynchronous work of a Chrome trace (b, n, e and the older S, T, p, F): paired by its ids and given tracks. Used by the
// Chrome trace reader; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "format/scope_pairs.h"
#include "profile/builder.h"

namespace cprof::format::chrome {

// Asynchronous work: everything with one id is one activity at a time. Activities of one name (or scope) in a process
// share a track while they do not overlap.
class AsyncTracks {
 public:
  explicit AsyncTracks(profile::ProfileBuilder& builder) : builder_(builder) {}

  struct Key {
    profile::ProcessId process{};
    StringId family = profile::kNoText;  // of ids: category and id belong together
    StringId id = profile::kNoText, scope = profile::kNoText;
    auto operator<=>(const Key&) const = default;
  };
  void add(const Key& key, Edge edge);
  bool empty() const { return edges_.empty(); }
  void pair(int64_t end_of_trace, PairCounts& counts);

 private:
  struct Activity {
    uint32_t pool = 0;
    int64_t start_ns = 0, end_ns = 0;
    profile::TrackId track{};
  };
  struct PoolKey {
    profile::ProcessId process{};
    StringId category = profile::kNoText, name = profile::kNoText;
    auto operator<=>(const PoolKey&) const = default;
  };

  void pair_lane(std::span<const uint32_t> rows, int64_t end_of_trace, PairCounts& counts);
  void begin_activity(const Edge& edge);
  void give_tracks();

  profile::ProfileBuilder& builder_;
  std::vector<Edge> edges_;
  std::map<Key, uint32_t> lane_of_;
  std::vector<Key> keys_;  // by lane
  std::vector<Activity> activities_;
  std::map<PoolKey, uint32_t> pools_;
  std::vector<PoolKey> pool_keys_;
};

}  // namespace cprof::format::chrome
