// Copies rows of one profile into a builder that may hold rows of others: with new numbers, interned texts, and equal
// places in code become one. Used by merge(), by keep_since() and by the filters and foldings of analyze. Only what is asked for is
// copied, so rows that nothing names stay behind. One thread.
#pragma once

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "profile/builder.h"

namespace cprof::profile {

// The mappings and locations that transfers into one builder share.
class SharedPlaces {
 public:
  // A file with a build-id is the same file wherever a process has it.
  MappingId mapping(ProfileBuilder& into, const Mapping& mapping, bool is_first);
  // The place that an earlier transfer brought, by file and address, or by name where nothing else is known of it. Rows of
  // the first profile never fall together: a copy of one profile is that profile.
  LocationId location(ProfileBuilder& into, const Location& location, std::span<const Line> lines, bool is_first);

 private:
  using FileKey = std::tuple<StringId, StringId, uint64_t, uint64_t>;  // path, build-id, offset, size
  std::map<FileKey, MappingId> files_;
  RowIndex locations_;
};

// By old number, the new ones; invalid where nothing uses the row any more.
struct Renumbering {
  std::vector<ProcessId> processes;
  std::vector<ThreadId> threads;
  std::vector<MappingId> mappings;
  std::vector<LocationId> locations;
  std::vector<CallSiteId> sites;
};

class Transfer {
 public:
  // shift_ns: what is added to every time. All three must outlive this.
  Transfer(const Profile& from, ProfileBuilder& into, SharedPlaces& places, int64_t shift_ns = 0);

  StringId text(StringId id);
  ProcessId process(ProcessId id);
  ThreadId thread(ThreadId id);
  FunctionId function(FunctionId id);
  LocationId location(LocationId id);
  CallSiteId site(CallSiteId id);
  LabelSetId labels(LabelSetId id);
  TrackId track(TrackId id);
  const Renumbering& numbers() const { return map_; }  // of what was copied so far
  // As it is, whatever other metrics there are.
  MetricId add_metric(MetricId id);
  std::vector<Label> labels_of(LabelSetId id);  // of the old number, with new texts
  uint64_t time(uint64_t ns) const;

  // What the caller decides about a row before anything names it.
  void set(MetricId old, MetricId now) { metrics_[old.index()] = now; }
  void set(LocationId old, LocationId now) { map_.locations[old.index()] = now; }
  void set(CallSiteId old, CallSiteId now) { map_.sites[old.index()] = now; }

  // A row with everything in it renumbered. Its metric must have been set or added.
  template <typename Row>
  Row moved(Row row) {
    if constexpr (requires { row.site; }) row.site = site(row.site);
    if constexpr (requires { row.thread; }) row.thread = thread(row.thread);
    if constexpr (requires { row.waker; }) row.waker = thread(row.waker);
    if constexpr (requires { row.metric; })
      if (row.metric.valid()) row.metric = metrics_[row.metric.index()];
    if constexpr (requires { row.labels; }) row.labels = labels(row.labels);
    if constexpr (requires { row.track; }) row.track = track(row.track);
    if constexpr (requires { row.name; }) row.name = text(row.name);
    if constexpr (requires { row.category; }) row.category = text(row.category);
    if constexpr (requires { row.time_ns; }) row.time_ns = time(row.time_ns);
    if constexpr (requires { row.start_ns; }) row.start_ns = time(row.start_ns);
    if constexpr (requires { row.end_ns; }) row.end_ns = time(row.end_ns);
    if constexpr (requires { row.woken_ns; }) row.woken_ns = row.woken_ns == 0 ? 0 : time(row.woken_ns);
    return row;
  }

 private:
  const Profile& from_;
  ProfileBuilder& into_;
  SharedPlaces& places_;
  int64_t shift_ns_;
  bool is_first_;  // the builder had no code yet
  Renumbering map_;
  std::vector<StringId> texts_;
  std::vector<FunctionId> functions_;
  std::vector<CallSiteId> path_;
  std::vector<LabelSetId> label_sets_;
  std::vector<TrackId> tracks_;
  std::vector<MetricId> metrics_;
  std::vector<Line> lines_;

  MappingId mapping(MappingId id);
};

// Everything, with the run and its diagnostics, into a builder that holds no rows yet.
void copy_all(const Profile& from, Transfer& transfer, ProfileBuilder& into);

}  // namespace cprof::profile
