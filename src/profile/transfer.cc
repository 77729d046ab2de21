#include "profile/transfer.h"

#include <algorithm>

namespace cprof::profile {
namespace {

// Known by its name only: its address was given by ProfileBuilder::take() and means nothing elsewhere.
bool is_known_by_name(const Profile& profile, const Location& location, size_t lines) {
  if (lines == 0) return false;
  if (!location.mapping.valid()) return true;
  const Mapping& mapping = profile.mappings[location.mapping.index()];
  return mapping.end <= mapping.start;
}

uint64_t hash_of(const Location& location, bool by_name, std::span<const Line> lines) {
  uint64_t hash = hash_join(location.mapping.value, by_name ? 0 : location.file_address);
  hash = hash_join(hash, uint64_t{static_cast<uint8_t>(location.kind)} << 2 | uint64_t{by_name} << 1 |
                             uint64_t{!by_name && location.is_return_address});
  for (const Line& line : lines) hash = hash_join(hash_join(hash, line.function.value), line.line);
  return hash;
}

bool is_same_place(const Profile& profile, LocationId known, const Location& location, bool by_name,
                   std::span<const Line> lines) {
  const Location& other = profile.locations[known.index()];
  if (other.mapping != location.mapping || other.kind != location.kind || other.is_folded != location.is_folded) return false;
  if (!by_name && (other.file_address != location.file_address || other.is_return_address != location.is_return_address))
    return false;
  return std::ranges::equal(profile.lines_of(known), lines);
}

}  // namespace

MappingId SharedPlaces::mapping(ProfileBuilder& into, const Mapping& mapping, bool is_first) {
  const bool is_file = mapping.build_id != kNoText && mapping.end > mapping.start;
  if (!is_file) return into.mapping(mapping);
  const FileKey key{mapping.path, mapping.build_id, mapping.file_offset, mapping.end - mapping.start};
  const auto known = files_.find(key);
  if (known != files_.end() && !is_first) return known->second;
  const MappingId made = into.mapping(mapping);
  files_.try_emplace(key, made);
  return made;
}

LocationId SharedPlaces::location(ProfileBuilder& into, const Location& location, std::span<const Line> lines,
                                  bool is_first) {
  if (lines.empty()) return into.location(location);
  const bool by_name = is_known_by_name(into.profile(), location, lines.size());
  auto add = [&] {
    if (is_first || !by_name) return into.add_location(location, lines);
    const LocationId made = into.named_location(location.mapping, location.kind, lines);
    into.profile().locations[made.index()].is_folded = location.is_folded;
    return made;
  };
  LocationId added;
  auto equal = [&](uint32_t row) { return is_same_place(into.profile(), LocationId(row), location, by_name, lines); };
  const uint32_t row = locations_.find_or_add(hash_of(location, by_name, lines), equal, [&] {
    added = add();
    return added.value;
  });
  return is_first && !added.valid() ? add() : LocationId(row);
}

Transfer::Transfer(const Profile& from, ProfileBuilder& into, SharedPlaces& places, int64_t shift_ns)
    : from_(from),
      into_(into),
      places_(places),
      shift_ns_(shift_ns),
      is_first_(into.profile().locations.empty()),
      map_{.processes = std::vector<ProcessId>(from.processes.size()),
           .threads = std::vector<ThreadId>(from.threads.size()),
           .mappings = std::vector<MappingId>(from.mappings.size()),
           .locations = std::vector<LocationId>(from.locations.size()),
           .sites = std::vector<CallSiteId>(from.sites.size())},
      texts_(from.strings.size()),
      functions_(from.functions.size()),
      label_sets_(from.label_sets.size()),
      tracks_(from.tracks.size()),
      metrics_(from.metrics.size()) {}

// Stays at the limits, so that the order of times does.
uint64_t Transfer::time(uint64_t ns) const {
  const auto shift = static_cast<uint64_t>(shift_ns_);
  if (shift_ns_ < 0) return ns < uint64_t{0} - shift ? 0 : ns + shift;
  return ns > UINT64_MAX - shift ? UINT64_MAX : ns + shift;
}

StringId Transfer::text(StringId id) {
  if (!id.valid()) return id;
  StringId& known = texts_[id.index()];
  if (!known.valid()) known = into_.intern(from_.text(id));
  return known;
}

ProcessId Transfer::process(ProcessId id) {
  if (!id.valid()) return id;
  ProcessId& known = map_.processes[id.index()];
  if (known.valid()) return known;
  const Process& row = from_.processes[id.index()];
  known = into_.add_process(row.pid, from_.text(row.name), row.start_ns == 0 ? 0 : time(row.start_ns));
  into_.profile().processes[known.index()].end_ns = row.end_ns == 0 ? 0 : time(row.end_ns);
  into_.profile().processes[known.index()].cgroup = text(row.cgroup);
  return known;
}

ThreadId Transfer::thread(ThreadId id) {
  if (!id.valid()) return id;
  ThreadId& known = map_.threads[id.index()];
  if (known.valid()) return known;
  const Thread& row = from_.threads[id.index()];
  known = into_.add_thread(process(row.process), row.tid, from_.text(row.name), row.start_ns == 0 ? 0 : time(row.start_ns));
  into_.profile().threads[known.index()].end_ns = row.end_ns == 0 ? 0 : time(row.end_ns);
  return known;
}

MappingId Transfer::mapping(MappingId id) {
  if (!id.valid()) return id;
  MappingId& known = map_.mappings[id.index()];
  if (known.valid()) return known;
  Mapping row = from_.mappings[id.index()];
  row.path = text(row.path);
  row.build_id = text(row.build_id);
  return known = places_.mapping(into_, row, is_first_);
}

FunctionId Transfer::function(FunctionId id) {
  if (!id.valid()) return id;
  FunctionId& known = functions_[id.index()];
  if (known.valid()) return known;
  Function row = from_.functions[id.index()];
  row.name = text(row.name);
  row.system_name = text(row.system_name);
  row.file = text(row.file);
  return known = into_.function(row);
}

LocationId Transfer::location(LocationId id) {
  if (!id.valid()) return id;
  LocationId& known = map_.locations[id.index()];
  if (known.valid()) return known;
  Location row = from_.locations[id.index()];
  if (row.mapping.valid()) {
    const uint64_t old_start = from_.mappings[row.mapping.index()].start;
    row.mapping = mapping(row.mapping);
    if (row.address != 0) row.address += into_.profile().mappings[row.mapping.index()].start - old_start;
  }
  lines_.clear();
  for (Line line : from_.lines_of(id)) {
    line.function = function(line.function);
    lines_.push_back(line);
  }
  return known = places_.location(into_, row, lines_, is_first_);
}

// From the first ancestor that is there already down to the site.
CallSiteId Transfer::site(CallSiteId id) {
  if (!id.valid()) return id;
  path_.clear();
  for (CallSiteId at = id; at.valid() && !map_.sites[at.index()].valid(); at = from_.sites[at.index()].parent) path_.push_back(at);
  for (size_t i = path_.size(); i-- > 0;) {
    const CallSite& row = from_.sites[path_[i].index()];
    const CallSiteId parent = row.parent.valid() ? map_.sites[row.parent.index()] : CallSiteId();
    map_.sites[path_[i].index()] = into_.site(parent, location(row.location));
  }
  return map_.sites[id.index()];
}

std::vector<Label> Transfer::labels_of(LabelSetId id) {
  const auto set = from_.labels_of(id);
  std::vector<Label> copies(set.begin(), set.end());
  for (Label& label : copies) {
    label.key = text(label.key);
    label.text = text(label.text);
    label.unit = text(label.unit);
  }
  return copies;
}

LabelSetId Transfer::labels(LabelSetId id) {
  if (!id.valid()) return id;
  LabelSetId& known = label_sets_[id.index()];
  if (!known.valid()) known = into_.label_set(labels_of(id));
  return known;
}

TrackId Transfer::track(TrackId id) {
  if (!id.valid()) return id;
  TrackId& known = tracks_[id.index()];
  if (known.valid()) return known;
  Track row = from_.tracks[id.index()];
  row.name = text(row.name);
  row.unit = text(row.unit);
  row.process = process(row.process);
  row.thread = thread(row.thread);
  auto& tracks = into_.profile().tracks;
  tracks.push_back(row);
  return known = TrackId(tracks.size() - 1);
}

MetricId Transfer::add_metric(MetricId id) {
  const Metric& row = from_.metrics[id.index()];
  return metrics_[id.index()] = into_.add_metric(from_.text(row.name), from_.text(row.unit), row.period, row.is_time);
}

void copy_all(const Profile& from, Transfer& transfer, ProfileBuilder& into) {
  Profile& to = into.profile();
  to.run = from.run;
  to.run.default_metric = transfer.text(from.run.default_metric);
  to.diagnostics.merge(from.diagnostics);
  for (size_t i = 0; i < from.metrics.size(); ++i) transfer.add_metric(MetricId(i));
  for (size_t i = 0; i < from.processes.size(); ++i) transfer.process(ProcessId(i));
  for (size_t i = 0; i < from.threads.size(); ++i) transfer.thread(ThreadId(i));
  for (size_t i = 0; i < from.tracks.size(); ++i) transfer.track(TrackId(i));
  for (const Sample& row : from.samples) into.add_sample(transfer.moved(row));
  for (const Aggregate& row : from.aggregates) into.add_aggregate(transfer.moved(row));
  auto append = [&](const auto& rows, auto& into_rows) {
    for (const auto& row : rows) into_rows.push_back(transfer.moved(row));
  };
  append(from.on_cpu, to.on_cpu);
  append(from.off_cpu, to.off_cpu);
  append(from.breaks, to.breaks);
  append(from.slices, to.slices);
  append(from.marks, to.marks);
  append(from.counters, to.counters);
}

}  // namespace cprof::profile
