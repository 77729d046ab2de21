#include "format/gperftools/legacy_profile.h"

#include <algorithm>

#include "format/frame_text.h"

namespace cprof::format {

void LegacyProfile::add_metric(std::string_view name, std::string_view unit, uint64_t period, bool is_time) {
  metrics_.push_back(builder_.add_metric(name, unit, period, is_time));
  profile().run.default_metric = profile().metrics.back().name;
}

void LegacyProfile::set_period(std::string_view type, std::string_view unit, int64_t period) {
  for (profile::Metric& metric : profile().metrics) {
    if (profile().text(metric.name) != type || profile().text(metric.unit) != unit) continue;
    metric.period = static_cast<uint64_t>(period);
    return;
  }
  profile().run.period_type = type;
  profile().run.period_unit = unit;
  profile().run.period = period;
}

void LegacyProfile::add_stack(std::span<const uint64_t> leaf_first, std::span<const int64_t> values,
                              int64_t block_size) {
  CPROF_CHECK(values.size() == metrics_.size());
  rows_.push_back({addresses_.size(), static_cast<uint32_t>(leaf_first.size()), block_size});
  addresses_.insert(addresses_.end(), leaf_first.begin(), leaf_first.end());
  values_.insert(values_.end(), values.begin(), values.end());
}

std::span<int64_t> LegacyProfile::last_values() {
  return std::span(values_).last(rows_.empty() ? 0 : metrics_.size());
}

void LegacyProfile::add_name(uint64_t address, std::string_view function, std::string_view file, uint32_t line) {
  const StringId text = builder_.intern(function);
  const auto id = builder_.function({.name = text, .system_name = text, .file = builder_.intern(file)});
  auto& lines = names_[address];
  const bool is_known = std::ranges::any_of(lines, [&](const profile::Line& l) { return l.function == id; });
  if (!is_known) lines.push_back({id, line});
}

void LegacyProfile::make_mappings() {
  map_.finish();
  for (const MapEntry& entry : map_.entries())
    mappings_.push_back(builder_.mapping({.path = builder_.intern(entry.path),
                                          .start = entry.start,
                                          .end = entry.limit,
                                          .file_offset = entry.offset,
                                          .load_bias = entry.start - entry.offset}));
}

profile::LocationId LegacyProfile::new_location(uint64_t address, bool is_return_address) {
  auto named = names_.find(address);
  if (named == names_.end() && is_return_address) named = names_.find(address - 1);  // as Go prints its callers
  const auto lines = named == names_.end() ? std::span<const profile::Line>() : std::span(named->second);
  if (is_numbered_ && !lines.empty()) return builder_.named_location({}, profile::FrameKind::kUser, lines);
  profile::Location row{.address = address, .file_address = address, .is_return_address = is_return_address};
  const size_t entry = is_numbered_ ? MemoryMap::kNone : map_.find(address - is_return_address);
  if (entry != MemoryMap::kNone) {
    row.mapping = mappings_[entry];
    row.file_address = address - profile().mappings[row.mapping.index()].load_bias;
    row.kind = kind_of_module(map_.entries()[entry].path);
  }
  const auto id = builder_.add_location(row, {});
  if (!lines.empty()) builder_.set_lines(id, lines);
  return id;
}

profile::LocationId LegacyProfile::location(uint64_t address, bool is_exact) {
  const bool is_return_address = !is_exact && address != 0;
  auto [it, is_new] = (is_return_address ? callers_ : exact_).try_emplace(address);
  if (is_new) it->second = new_location(address, is_return_address);
  return it->second;
}

profile::Profile LegacyProfile::take() {
  make_mappings();
  std::vector<profile::LocationId> path;
  size_t value = 0;
  for (const Row& row : rows_) {
    path.clear();
    for (uint32_t i = row.count; i-- > 0;)
      path.push_back(location(addresses_[row.first + i], is_numbered_ || (has_exact_leaves_ && i == 0)));
    profile::Aggregate sum{.site = builder_.stack(path)};
    if (row.block_size != kNoBlock) {
      const profile::Label label{.key = builder_.intern("bytes"), .number = row.block_size, .is_number = true};
      sum.labels = builder_.label_set({&label, 1});
    }
    for (profile::MetricId metric : metrics_) {
      sum.metric = metric;
      sum.value = values_[value++];
      builder_.add_aggregate(sum);
    }
  }
  return builder_.take();
}

}  // namespace cprof::format
