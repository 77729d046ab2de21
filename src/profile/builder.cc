// Interning keeps no second copy of a key: each index holds (hash, row number) and compares with the row in the
// Profile. Locations that an import knows by name only get their address last, in take(), when all real addresses of
// their mapping are known: writers and Perfetto's importer need one unique, non-zero address per location.
#include "profile/builder.h"

#include <algorithm>
#include <limits>

namespace cprof::profile {
namespace {

template <typename... Values>
uint64_t hash_of(Values... values) {
  uint64_t hash = hash_seed();
  ((hash = hash_join(hash, static_cast<uint64_t>(values))), ...);
  return hash;
}

uint64_t hash_lines(uint64_t hash, std::span<const Line> lines) {
  for (const Line& line : lines) {
    hash = hash_join(hash, line.function.value);
    hash = hash_join(hash, uint64_t{line.line} << 32 | line.column);
  }
  return hash;
}

bool same_label(const Label& a, const Label& b) {
  return a.key == b.key && a.text == b.text && a.number == b.number && a.unit == b.unit && a.is_number == b.is_number;
}

uint64_t hash_labels(std::span<const Label> labels) {
  uint64_t hash = hash_of(labels.size());
  for (const Label& label : labels) {
    hash = hash_join(hash, uint64_t{label.key.value} << 32 | label.text.value);
    hash = hash_join(hash, static_cast<uint64_t>(label.number));
    hash = hash_join(hash, uint64_t{label.unit.value} << 1 | label.is_number);
  }
  return hash;
}

void note_lines(Profile& profile, MappingId id, std::span<const Line> lines) {
  if (!id.valid() || lines.empty()) return;
  Mapping& mapping = profile.mappings[id.index()];
  mapping.has_functions = true;
  mapping.has_inline_frames |= lines.size() > 1;
  for (const Line& line : lines) {
    mapping.has_line_numbers |= line.line != 0;
    if (line.function.valid()) mapping.has_filenames |= profile.functions[line.function.index()].file != kNoText;
  }
}

}  // namespace

ProcessId ProfileBuilder::add_process(int32_t pid, std::string_view name, uint64_t start_ns) {
  profile_.processes.push_back({.pid = pid, .name = intern(name), .start_ns = start_ns});
  return ProcessId(profile_.processes.size() - 1);
}

ThreadId ProfileBuilder::add_thread(ProcessId process, int32_t tid, std::string_view name, uint64_t start_ns) {
  profile_.threads.push_back({.process = process, .tid = tid, .name = intern(name), .start_ns = start_ns});
  return ThreadId(profile_.threads.size() - 1);
}

MetricId ProfileBuilder::add_metric(std::string_view name, std::string_view unit, uint64_t period, bool is_time) {
  profile_.metrics.push_back({.name = intern(name), .unit = intern(unit), .period = period, .is_time = is_time});
  return MetricId(profile_.metrics.size() - 1);
}

MappingId ProfileBuilder::mapping(const Mapping& mapping) {
  auto& rows = profile_.mappings;
  const uint64_t hash = hash_of(mapping.path.value, mapping.build_id.value, mapping.start, mapping.file_offset);
  auto equal = [&](uint32_t row) {
    const Mapping& m = rows[row];
    return m.path == mapping.path && m.build_id == mapping.build_id && m.start == mapping.start &&
           m.file_offset == mapping.file_offset;
  };
  const uint32_t row = mappings_.find_or_add(hash, equal, [&] {
    rows.push_back(mapping);
    return static_cast<uint32_t>(rows.size() - 1);
  });
  Mapping& merged = rows[row];
  merged.end = std::max(merged.end, mapping.end);
  merged.has_functions |= mapping.has_functions;
  merged.has_filenames |= mapping.has_filenames;
  merged.has_line_numbers |= mapping.has_line_numbers;
  merged.has_inline_frames |= mapping.has_inline_frames;
  return MappingId(row);
}

FunctionId ProfileBuilder::function(const Function& function) {
  auto& rows = profile_.functions;
  const uint64_t hash =
      hash_of(function.name.value, function.system_name.value, function.file.value, function.start_line);
  auto equal = [&](uint32_t row) {
    const Function& f = rows[row];
    return f.name == function.name && f.system_name == function.system_name && f.file == function.file &&
           f.start_line == function.start_line;
  };
  return FunctionId(functions_.find_or_add(hash, equal, [&] {
    rows.push_back(function);
    return static_cast<uint32_t>(rows.size() - 1);
  }));
}

// Returns how many lines did not fit: the count is 16 bits wide.
uint32_t ProfileBuilder::attach_lines(Location& location, std::span<const Line> lines) {
  constexpr size_t kMax = std::numeric_limits<uint16_t>::max();
  const size_t kept = std::min(lines.size(), kMax);
  if (kept > location.line_count) {
    location.first_line = static_cast<uint32_t>(profile_.lines.size());
    profile_.lines.insert(profile_.lines.end(), lines.begin(), lines.begin() + static_cast<ptrdiff_t>(kept));
  } else {
    std::copy_n(lines.begin(), kept, profile_.lines.begin() + location.first_line);
  }
  location.line_count = static_cast<uint16_t>(kept);
  return static_cast<uint32_t>(lines.size() - kept);
}

LocationId ProfileBuilder::location(const Location& location) {
  auto& rows = profile_.locations;
  const uint64_t hash = hash_of(location.mapping.value, location.file_address,
                                static_cast<uint64_t>(location.kind) << 1 | location.is_return_address);
  auto equal = [&](uint32_t row) {
    const Location& l = rows[row];
    return l.mapping == location.mapping && l.file_address == location.file_address && l.kind == location.kind &&
           l.is_return_address == location.is_return_address;
  };
  return LocationId(locations_.find_or_add(hash, equal, [&] { return add_location(location, {}).value; }));
}

LocationId ProfileBuilder::named_location(MappingId mapping, FrameKind kind, std::span<const Line> lines) {
  const uint64_t hash = hash_lines(hash_of(mapping.value, static_cast<uint64_t>(kind), lines.size()), lines);
  auto equal = [&](uint32_t row) {
    const Location& l = profile_.locations[row];
    return l.mapping == mapping && l.kind == kind &&
           std::ranges::equal(profile_.lines_of(LocationId(row)), lines);
  };
  return LocationId(named_locations_.find_or_add(hash, equal, [&] {
    named_.push_back(add_location({.mapping = mapping, .kind = kind}, lines));
    note_lines(profile_, mapping, lines);
    return named_.back().value;
  }));
}

LocationId ProfileBuilder::add_location(const Location& location, std::span<const Line> lines) {
  Location row = location;
  row.first_line = 0;
  row.line_count = 0;
  if (uint32_t cut = attach_lines(row, lines))
    profile_.diagnostics.add("inline_lines_cut", Severity::kDataLoss,
                             "inlined functions beyond 65,535 at one address were left out", cut);
  profile_.locations.push_back(row);
  return LocationId(profile_.locations.size() - 1);
}

void ProfileBuilder::set_lines(LocationId id, std::span<const Line> innermost_first) {
  Location& location = profile_.locations[id.index()];
  if (uint32_t cut = attach_lines(location, innermost_first))
    profile_.diagnostics.add("inline_lines_cut", Severity::kDataLoss,
                             "inlined functions beyond 65,535 at one address were left out", cut);
  note_lines(profile_, location.mapping, innermost_first);
}

CallSiteId ProfileBuilder::site(CallSiteId parent, LocationId location) {
  auto& rows = profile_.sites;
  auto is_child = [&](uint32_t row) { return rows[row].parent == parent && rows[row].location == location; };
  return CallSiteId(sites_.find_or_add(parent.value, location.value, rows.size(), is_child, [&] {
    rows.push_back({parent, location, parent.valid() ? rows[parent.index()].depth + 1 : 0});
    return static_cast<uint32_t>(rows.size() - 1);
  }));
}

// A stack's sites were mostly made in one go, so they lie side by side: walking them to compare costs a few cache
// lines, while asking for each site anew would cost a miss per frame.
bool ProfileBuilder::is_stack(CallSiteId leaf, std::span<const LocationId> root_first) const {
  const CallSite* site = &profile_.sites[leaf.index()];
  if (site->depth + size_t{1} != root_first.size()) return false;
  for (size_t i = root_first.size(); i-- > 0; site = &profile_.sites[site->parent.index()]) {
    if (site->location != root_first[i]) return false;
    if (i == 0) return true;
  }
  return false;
}

CallSiteId ProfileBuilder::stack(std::span<const LocationId> root_first) {
  if (root_first.empty()) return {};
  uint64_t hash = hash_of(root_first.size());
  for (LocationId location : root_first) hash = hash_join(hash, location.value);
  return CallSiteId(stacks_.find_or_add(
      hash, [&](uint32_t row) { return is_stack(CallSiteId(row), root_first); },
      [&] { return new_stack(root_first).value; }));
}

CallSiteId ProfileBuilder::new_stack(std::span<const LocationId> root_first) {
  const auto shared = static_cast<size_t>(std::ranges::mismatch(root_first, last_stack_).in1 - root_first.begin());
  last_stack_.resize(shared);
  last_sites_.resize(shared);
  CallSiteId at = shared ? last_sites_.back() : CallSiteId();
  for (LocationId location : root_first.subspan(shared)) {
    at = site(at, location);
    last_stack_.push_back(location);
    last_sites_.push_back(at);
  }
  return at;
}

bool ProfileBuilder::is_label_set(uint32_t row, std::span<const Label> labels) const {
  const auto [first, count] = profile_.label_sets[row];
  return std::ranges::equal(std::span(profile_.labels).subspan(first, count), labels, same_label);
}

uint32_t ProfileBuilder::add_label_set(std::span<const Label> labels) {
  profile_.label_sets.emplace_back(profile_.labels.size(), labels.size());
  profile_.labels.insert(profile_.labels.end(), labels.begin(), labels.end());
  return static_cast<uint32_t>(profile_.label_sets.size() - 1);
}

LabelSetId ProfileBuilder::label_set(std::span<const Label> labels) {
  if (labels.empty()) return {};
  auto equal = [&](uint32_t row) { return is_label_set(row, labels); };
  return LabelSetId(label_sets_.find_or_add(hash_labels(labels), equal, [&] { return add_label_set(labels); }));
}

LabelSetId ProfileBuilder::recent_label_set(std::span<const Label> labels) {
  constexpr size_t kRecent = 4096;
  if (labels.empty()) return {};
  recent_label_sets_.resize(kRecent);
  const uint64_t hash = hash_labels(labels);
  auto& [known_hash, id] = recent_label_sets_[hash % kRecent];
  if (!id.valid() || known_hash != hash || !is_label_set(id.value, labels)) {
    known_hash = hash;
    id = LabelSetId(add_label_set(labels));
  }
  return id;
}

void ProfileBuilder::add_aggregate(const Aggregate& aggregate) {
  auto& rows = profile_.aggregates;
  const uint64_t hash = hash_of(aggregate.site.value, uint64_t{aggregate.metric.value} << 32 | aggregate.labels.value,
                                uint64_t{aggregate.thread.value} << 8 | static_cast<uint64_t>(aggregate.end));
  auto equal = [&](uint32_t row) {
    const Aggregate& a = rows[row];
    return a.site == aggregate.site && a.metric == aggregate.metric && a.labels == aggregate.labels &&
           a.thread == aggregate.thread && a.end == aggregate.end;
  };
  bool added = false;
  const uint32_t row = aggregates_.find_or_add(hash, equal, [&] {
    added = true;
    rows.push_back(aggregate);
    return static_cast<uint32_t>(rows.size() - 1);
  });
  if (added || !__builtin_add_overflow(rows[row].value, aggregate.value, &rows[row].value)) return;
  rows[row].value = aggregate.value < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  profile_.diagnostics.add("value_overflow", Severity::kDataLoss,
                           "sums of a stack's values left the range of 64 bits and stand at its limit");
}

// Named locations take the lowest addresses of their mapping, from its start + 1 up, that no real location has.
void ProfileBuilder::give_addresses() {
  if (named_.empty()) return;
  const size_t none = profile_.mappings.size();  // the group of locations without a mapping
  auto group_of = [&](const Location& l) { return l.mapping.valid() ? l.mapping.index() : none; };
  std::vector<bool> has_named(none + 1);
  for (LocationId id : named_) has_named[group_of(profile_.locations[id.index()])] = true;

  std::vector<std::pair<size_t, uint64_t>> taken;
  for (const Location& l : profile_.locations)
    if (l.address != 0 && has_named[group_of(l)]) taken.emplace_back(group_of(l), l.address);
  std::ranges::sort(taken);

  std::vector<uint64_t> next(none + 1, 1);
  for (size_t i = 0; i < none; ++i) next[i] = profile_.mappings[i].start + 1;
  for (LocationId id : named_) {
    Location& l = profile_.locations[id.index()];
    const size_t group = group_of(l);
    while (std::ranges::binary_search(taken, std::pair(group, next[group]))) ++next[group];
    l.address = l.file_address = next[group]++;
  }
  named_.clear();
}

Profile ProfileBuilder::take() {
  give_addresses();
  auto by_time = [](const Sample& a, const Sample& b) { return a.time_ns < b.time_ns; };
  if (!std::ranges::is_sorted(profile_.samples, by_time)) std::ranges::stable_sort(profile_.samples, by_time);
  auto sort_by_thread = [](auto& rows) {
    auto by_thread = [](const auto& a, const auto& b) {
      return std::pair(a.thread, a.start_ns) < std::pair(b.thread, b.start_ns);
    };
    if (!std::ranges::is_sorted(rows, by_thread)) std::ranges::stable_sort(rows, by_thread);
  };
  sort_by_thread(profile_.on_cpu);
  sort_by_thread(profile_.off_cpu);
  std::ranges::stable_sort(profile_.breaks, {}, [](const Break& b) { return std::pair(b.thread, b.time_ns); });
  return std::move(profile_);
}

}  // namespace cprof::profile
