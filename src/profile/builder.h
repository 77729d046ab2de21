// Builds a Profile: interns locations and call sites, keeps parents before children. Used by the pipeline and by every
// reader; one thread. take() sorts the samples and gives the Profile away.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace cprof::profile {

class ProfileBuilder {
 public:
  ProfileBuilder();

  Profile& profile() { return profile_; }
  StringId intern(std::string_view text) { return profile_.strings.intern(text); }

  ProcessId add_process(int32_t pid, std::string_view name, uint64_t start_ns = 0);
  ThreadId add_thread(ProcessId process, int32_t tid, std::string_view name, uint64_t start_ns = 0);
  MetricId add_metric(std::string_view name, std::string_view unit, uint64_t period = 0, bool is_time = false);

  // Interned by (path, build_id, start, file_offset); end and flags are merged.
  MappingId mapping(const Mapping& mapping);
  // Interned by all four fields.
  FunctionId function(const Function& function);

  // Interned by (mapping, file_address, kind, is_return_address). Named later through set_lines().
  LocationId location(const Location& location);
  // Interned by (mapping, kind, lines): a frame that an import knows by name only. Gets an address unique in its mapping.
  LocationId named_location(MappingId mapping, FrameKind kind, std::span<const Line> lines);
  // A new row every time, lines attached: for formats that carry their own location ids.
  LocationId add_location(const Location& location, std::span<const Line> lines);
  void set_lines(LocationId id, std::span<const Line> innermost_first);

  // parent invalid: a root.
  CallSiteId site(CallSiteId parent, LocationId location);
  CallSiteId stack(std::span<const LocationId> root_first);

  LabelSetId label_set(std::span<const Label> labels);  // interned

  void add_sample(const Sample& sample) { profile_.samples.push_back(sample); }
  // Sums into an existing row of equal (site, metric, labels, thread).
  void add_aggregate(const Aggregate& aggregate);

  Profile take();

 private:
  struct Key {
    uint64_t a, b, c, d;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  using Index = std::unordered_map<Key, uint32_t, KeyHash>;

  Profile profile_;
  Index mappings_, functions_, locations_, sites_, aggregates_;
  std::unordered_map<size_t, std::vector<uint32_t>> named_locations_, label_sets_;
};

}  // namespace cprof::profile
