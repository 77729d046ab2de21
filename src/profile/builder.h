// Builds a Profile: interns locations and call sites, keeps parents before children. Used by the pipeline and by every
// reader; one thread. take() sorts the samples and gives the Profile away; the builder is then used up.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"
#include "profile/row_index.h"

namespace cprof::profile {

class ProfileBuilder {
 public:
  ProfileBuilder() = default;

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
  // Interned by (mapping, kind, lines): a frame that an import knows by name only. take() gives it an address that no
  // other location of its mapping has.
  LocationId named_location(MappingId mapping, FrameKind kind, std::span<const Line> lines);
  // A new row every time, lines attached: for formats that carry their own location ids.
  LocationId add_location(const Location& location, std::span<const Line> lines);
  // Replaces the lines, and sets the mapping's has_* flags to what they show.
  void set_lines(LocationId id, std::span<const Line> innermost_first);

  // parent invalid: a root.
  CallSiteId site(CallSiteId parent, LocationId location);
  // The site of the last location; invalid when root_first is empty. A stack seen before is found as a whole.
  CallSiteId stack(std::span<const LocationId> root_first);

  LabelSetId label_set(std::span<const Label> labels);  // interned; invalid when empty
  // The same, looked for among the newest only: for slices and marks, whose labels hardly ever come again, and of which
  // nobody asks whether two are one row.
  LabelSetId recent_label_set(std::span<const Label> labels);

  void add_sample(const Sample& sample) { profile_.samples.push_back(sample); }
  // Sums into an existing row of equal (site, metric, labels, thread, end); a sum that leaves int64 stays at its limit and
  // is counted in the diagnostics.
  void add_aggregate(const Aggregate& aggregate);

  Profile take();

 private:
  uint32_t attach_lines(Location& location, std::span<const Line> lines);
  bool is_label_set(uint32_t row, std::span<const Label> labels) const;
  uint32_t add_label_set(std::span<const Label> labels);
  bool is_stack(CallSiteId leaf, std::span<const LocationId> root_first) const;
  CallSiteId new_stack(std::span<const LocationId> root_first);
  void give_addresses();

  Profile profile_;
  RowIndex mappings_, functions_, locations_, named_locations_, label_sets_, aggregates_, stacks_;
  ChildIndex sites_;
  std::vector<std::pair<uint64_t, LabelSetId>> recent_label_sets_;  // the hash of each, at its place by it
  std::vector<LocationId> named_;       // those that take() gives an address
  std::vector<LocationId> last_stack_;  // the newest of stacks_, root first,
  std::vector<CallSiteId> last_sites_;  // and its sites
};

}  // namespace cprof::profile
