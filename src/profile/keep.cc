// Marks what is used, from the samples up to the root of each stack and down to files and texts, then makes a second
// profile of the marked rows in their old order: parents stay before their children, and equal runs stay equal.
#include "profile/keep.h"

#include <algorithm>
#include <utility>

namespace cprof::profile {
namespace {

class Keeper {
 public:
  Keeper(Profile old, uint64_t since_ns) : old_(std::move(old)), since_ns_(since_ns) {
    map_.processes.resize(old_.processes.size());
    map_.threads.resize(old_.threads.size());
    map_.mappings.resize(old_.mappings.size());
    map_.locations.resize(old_.locations.size());
    map_.sites.resize(old_.sites.size());
    threads_.resize(old_.threads.size());
    sites_.resize(old_.sites.size());
  }

  Renumbering run(std::span<const CallSiteId> used) {
    for (CallSiteId site : used) mark(site);
    mark_rows();
    copy_run();
    copy_threads();
    copy_tracks();
    copy_code();
    copy_rows();
    return std::move(map_);
  }
  ProfileBuilder take() { return std::move(new_); }

 private:
  bool is_kept(const Sample& sample) const { return sample.time_ns >= since_ns_; }
  bool is_kept(const SwitchInterval& on) const { return on.end_ns >= since_ns_; }
  bool is_kept(const OffCpuInterval& off) const { return off.end_ns >= since_ns_; }
  bool is_kept(const Slice& slice) const { return slice.is_open || slice.start_ns + slice.duration_ns >= since_ns_; }
  bool is_kept(const Mark& mark) const { return mark.time_ns >= since_ns_; }
  bool is_kept(const CounterValue& value) const { return value.time_ns >= since_ns_; }

  void mark(CallSiteId site) {
    if (site.valid()) sites_[site.index()] = true;
  }
  void mark(ThreadId thread) {
    if (thread.valid()) threads_[thread.index()] = true;
  }

  void mark_rows() {
    for (const Sample& sample : old_.samples)
      if (is_kept(sample)) mark(sample.site), mark(sample.thread);
    for (const Aggregate& row : old_.aggregates) mark(row.site), mark(row.thread);
    for (const SwitchInterval& on : old_.on_cpu)
      if (is_kept(on)) mark(on.thread);
    for (const OffCpuInterval& off : old_.off_cpu)
      if (is_kept(off)) mark(off.site), mark(off.thread), mark(off.waker);
    for (const Slice& slice : old_.slices)
      if (is_kept(slice)) mark(slice.thread);
    for (const Mark& mark_row : old_.marks)
      if (is_kept(mark_row)) mark(mark_row.thread);
    for (const Track& track : old_.tracks) mark(track.thread);
    for (size_t i = old_.sites.size(); i-- > 0;)
      if (sites_[i]) mark(old_.sites[i].parent);
  }

  StringId text(StringId id) { return new_.intern(old_.text(id)); }

  void copy_run() {
    Profile& profile = new_.profile();
    profile.run = std::move(old_.run);
    profile.diagnostics = std::move(old_.diagnostics);
    if (since_ns_ > profile.run.start_ns) {
      if (profile.run.start_realtime_ns) profile.run.start_realtime_ns += since_ns_ - profile.run.start_ns;
      profile.run.start_ns = since_ns_;
    }
    for (const Metric& metric : old_.metrics)
      new_.add_metric(old_.text(metric.name), old_.text(metric.unit), metric.period, metric.is_time);
    profile.run.default_metric = text(profile.run.default_metric);
  }

  ProcessId process(ProcessId id) {
    if (!id.valid()) return id;
    ProcessId& mapped = map_.processes[id.index()];
    if (mapped.valid()) return mapped;
    const Process& row = old_.processes[id.index()];
    mapped = new_.add_process(row.pid, old_.text(row.name), row.start_ns);
    new_.profile().processes[mapped.index()].end_ns = row.end_ns;
    return mapped;
  }

  void copy_threads() {
    for (size_t i = 0; i < threads_.size(); i++) {
      if (!threads_[i]) continue;
      const Thread& thread = old_.threads[i];
      map_.threads[i] = new_.add_thread(process(thread.process), thread.tid, old_.text(thread.name), thread.start_ns);
      new_.profile().threads[map_.threads[i].index()].end_ns = thread.end_ns;
    }
  }

  MappingId mapping(MappingId id) {
    if (!id.valid()) return id;
    MappingId& mapped = map_.mappings[id.index()];
    if (mapped.valid()) return mapped;
    Mapping row = old_.mappings[id.index()];
    row.path = text(row.path);
    row.build_id = text(row.build_id);
    return mapped = new_.mapping(row);
  }

  LocationId location(LocationId id) {
    LocationId& mapped = map_.locations[id.index()];
    if (mapped.valid()) return mapped;
    Location row = old_.locations[id.index()];
    row.mapping = mapping(row.mapping);
    return mapped = new_.location(row);
  }

  void copy_code() {
    for (size_t i = 0; i < sites_.size(); i++) {
      if (!sites_[i]) continue;
      const CallSite& site = old_.sites[i];
      CallSiteId parent = site.parent.valid() ? map_.sites[site.parent.index()] : CallSiteId();
      map_.sites[i] = new_.site(parent, location(site.location));
    }
  }

  LabelSetId labels(LabelSetId id) {
    if (!id.valid()) return id;
    auto [first, count] = old_.label_sets[id.index()];
    std::vector<Label> copies(old_.labels.begin() + first, old_.labels.begin() + first + count);
    for (Label& label : copies) label.key = text(label.key), label.text = text(label.text), label.unit = text(label.unit);
    return new_.label_set(copies);
  }

  template <typename Row>
  Row moved(Row row) {
    if constexpr (requires { row.site; })
      if (row.site.valid()) row.site = map_.sites[row.site.index()];
    if constexpr (requires { row.labels; }) row.labels = labels(row.labels);
    if constexpr (requires { row.waker; })
      if (row.waker.valid()) row.waker = map_.threads[row.waker.index()];
    if (row.thread.valid()) row.thread = map_.threads[row.thread.index()];
    return row;
  }

  void copy_rows() {
    Profile& profile = new_.profile();
    for (const Sample& sample : old_.samples)
      if (is_kept(sample)) new_.add_sample(moved(sample));
    for (const Aggregate& row : old_.aggregates) new_.add_aggregate(moved(row));
    for (const SwitchInterval& on : old_.on_cpu) {
      if (!is_kept(on)) continue;
      profile.on_cpu.push_back(moved(on));
      profile.on_cpu.back().start_ns = std::max(on.start_ns, since_ns_);
    }
    for (const OffCpuInterval& off : old_.off_cpu) {
      if (!is_kept(off)) continue;
      OffCpuInterval& row = profile.off_cpu.emplace_back(moved(off));
      row.start_ns = std::max(off.start_ns, since_ns_);
      if (off.woken_ns) row.woken_ns = std::max(off.woken_ns, row.start_ns);
    }
    copy_named(old_.slices, profile.slices);
    copy_named(old_.marks, profile.marks);
    for (const CounterValue& value : old_.counters)
      if (is_kept(value)) profile.counters.push_back(value);
  }

  // All of them, so that their numbers stay.
  void copy_tracks() {
    for (Track track : old_.tracks) {
      track.name = text(track.name);
      track.unit = text(track.unit);
      track.process = process(track.process);
      if (track.thread.valid()) track.thread = map_.threads[track.thread.index()];
      new_.profile().tracks.push_back(track);
    }
  }

  template <typename Row>
  void copy_named(const std::vector<Row>& rows, std::vector<Row>& into) {
    for (const Row& row : rows) {
      if (!is_kept(row)) continue;
      into.push_back(moved(row));
      into.back().name = text(row.name);
      into.back().category = text(row.category);
    }
  }

  Profile old_;
  uint64_t since_ns_;
  ProfileBuilder new_;
  Renumbering map_;
  std::vector<bool> threads_, sites_;
};

}  // namespace

Renumbering keep_since(ProfileBuilder& builder, uint64_t since_ns, std::span<const CallSiteId> used) {
  Keeper keeper(std::move(builder.profile()), since_ns);
  Renumbering map = keeper.run(used);
  builder = keeper.take();
  return map;
}

}  // namespace cprof::profile
