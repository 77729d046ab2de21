// Begins and ends of slices, in any order of the file, paired into slices: B and E of threads, b and e and their older
// forms of asynchronous work. Used by the Chrome trace reader; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "profile/builder.h"

namespace cprof::format::chrome {

struct Edge {
  enum class Kind : uint8_t { kBegin, kEnd, kMark };
  int64_t time_ns = 0;
  uint32_t lane = 0;  // a thread, or an asynchronous id
  StringId name = profile::kNoText, category = profile::kNoText;
  profile::LabelSetId labels{};
  Kind kind = Kind::kBegin;
};

struct PairCounts {
  uint64_t open = 0;            // begins that no end closed
  uint64_t unmatched_ends = 0;  // ends that closed nothing
  uint64_t not_nested = 0;      // ends that closed another slice than the newest, or that may have
};

// Pairs the edges of one lane, given in the order of time. An end with a name closes the newest slice of that name, one
// without the newest slice.
class LanePairs {
 public:
  LanePairs(profile::ProfileBuilder& builder, int64_t end_of_trace, PairCounts& counts)
      : builder_(builder), end_of_trace_(end_of_trace), counts_(counts) {}

  // The slice begun, or closed: its row; owner fields are the caller's to set at a begin.
  uint32_t begin(const Edge& edge);
  void end(const Edge& edge);
  void close_all();
  bool empty() const { return open_.empty(); }

 private:
  struct Open {
    uint32_t row;
    StringId name;
  };
  void add_labels(profile::Slice& slice, profile::LabelSetId more);

  profile::ProfileBuilder& builder_;
  int64_t end_of_trace_;
  PairCounts& counts_;
  std::vector<Open> open_;
};

// The rows of edges, lane by lane, in each by time, equal times in the order of the file.
std::vector<uint32_t> in_lanes(const std::vector<Edge>& edges, size_t lanes);

void pair_threads(profile::ProfileBuilder& builder, const std::vector<Edge>& edges, int64_t end_of_trace,
                  PairCounts& counts);

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
