// The tracks of a Perfetto trace and what happens on them: events wait until all is read, for tracks may be described after
// their events and events may come in any order. Used by the pftrace reader; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>


#include "base/number_map.h"
#include "format/pftrace/proto_fields.h"
#include "format/scope_pairs.h"
#include "profile/builder.h"

namespace cprof::format {

class TraceTracks {
 public:
  explicit TraceTracks(profile::ProfileBuilder& builder) : builder_(builder) {}

  profile::ProcessId process(int32_t pid);
  profile::ThreadId thread(int32_t pid, int32_t tid);
  void name_process(int32_t pid, std::string_view name);
  void name_thread(int32_t pid, int32_t tid, std::string_view name);

  void describe(ProtoFields descriptor);

  // Lanes for edges and counter values.
  uint32_t lane_of_uuid(uint64_t uuid);
  uint32_t lane_of_thread(int32_t pid, int32_t tid);

  void add_edge(const Edge& edge) { edges_.push_back(edge); }
  // A slice that is told as a whole.
  void add_slice(const Edge& edge, uint64_t duration_ns);
  void add_counter(uint32_t lane, uint64_t time_ns, double value) { values_.push_back({lane, time_ns, value}); }

  // Everything into the profile: slices, marks, counters and the tracks that they use.
  void finish(uint64_t end_of_trace, PairCounts& counts);

 private:
  struct Descriptor {
    StringId name = profile::kNoText, unit = profile::kNoText;
    uint64_t parent = 0;
    profile::ProcessId process{};
    profile::ThreadId thread{};
    double multiplier = 1;
    bool is_counter = false, is_incremental = false, is_known = false;
  };
  struct Lane {
    uint64_t uuid = 0;
    profile::ThreadId thread{};  // of events that name a thread instead of a track
    profile::TrackId track{};
    bool is_resolved = false;
  };
  struct Value {
    uint32_t lane;
    uint64_t time_ns;
    double value;
  };

  void describe_process(Descriptor& track, ProtoFields fields);
  void describe_thread(Descriptor& track, ProtoFields fields);
  void describe_counter(Descriptor& track, ProtoFields fields);
  Lane& resolve(uint32_t lane);
  profile::TrackId make_track(const Descriptor& descriptor, uint64_t uuid);
  void finish_edges(uint64_t end_of_trace, PairCounts& counts);
  void finish_counters();

  profile::ProfileBuilder& builder_;
  NumberMap<int32_t, profile::ProcessId> processes_;
  std::map<std::pair<int32_t, int32_t>, profile::ThreadId> threads_;
  NumberMap<uint64_t, Descriptor> descriptors_;  // by uuid
  NumberMap<uint64_t, uint32_t> lane_of_uuid_;
  std::unordered_map<profile::ThreadId, uint32_t> lane_of_thread_;
  std::vector<Lane> lanes_;
  std::vector<Edge> edges_;
  std::vector<Value> values_;
  struct Whole {
    uint32_t lane;
    profile::Slice slice;
  };
  std::vector<Whole> wholes_;
};

}  // namespace cprof::format
