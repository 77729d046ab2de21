#include "analyze/code_values.h"

#include <algorithm>
#include <map>

#include "analyze/groups.h"
#include "analyze/site_walk.h"
#include "analyze/top.h"

namespace cprof::analyze {

using profile::LocationId;
using profile::Profile;

std::vector<CodeValue> values_by_location(const Profile& profile, const SiteTotals& totals) {
  std::vector<CodeValue> values(profile.locations.size());
  std::vector<uint32_t> open(profile.locations.size());
  const std::vector<int64_t> inclusive = inclusive_by_site(profile, totals);
  auto enter = [&](uint32_t site) {
    const size_t at = profile.sites[site].location.index();
    if (open[at]++ == 0) values[at].total = add_clamped(values[at].total, inclusive[site]);
    values[at].self = add_clamped(values[at].self, totals.self(site));
  };
  walk_sites(profile, enter, [&](uint32_t site) { --open[profile.sites[site].location.index()]; });
  return values;
}

namespace {

// A function of one binary: static functions of one name in two files are two.
using FunctionKey = std::pair<uint32_t, std::string_view>;

struct Place {
  FunctionKey key;
  uint32_t line = 0;
};

std::optional<Place> place_of(const Profile& profile, const Groups& groups, uint32_t group) {
  const auto frame = groups.frame_of(group);
  if (!frame) return std::nullopt;
  const auto lines = profile.lines_of(frame->first);
  if (frame->second >= lines.size() || !lines[frame->second].function.valid()) return std::nullopt;
  const profile::MappingId mapping = profile.locations[frame->first.index()].mapping;
  const std::string_view path = mapping.valid() ? profile.text(profile.mappings[mapping.index()].path) : std::string_view();
  return Place{{lines[frame->second].function.value, path}, lines[frame->second].line};
}

}  // namespace

std::vector<ListedFunction> list_functions(const Profile& profile, const SiteTotals& totals, const Pattern& pattern) {
  std::map<FunctionKey, ListedFunction> found;
  const Groups functions(profile, Granularity::kFunctions), lines(profile, Granularity::kLines);
  for (const TopRow& row : top_functions(profile, functions, totals)) {
    const auto place = place_of(profile, functions, row.group);
    if (!place) continue;
    const profile::Function& function = profile.functions[place->key.first];
    if (!pattern.found_in(profile.text(function.name))) continue;
    found[place->key] = {.name = profile.text(function.name),
                         .file = profile.text(function.file),
                         .module = profile::base_name(place->key.second),
                         .start_line = function.start_line,
                         .value = {row.self, row.total},
                         .lines = {}};
  }
  for (const TopRow& row : top_functions(profile, lines, totals)) {
    const auto place = place_of(profile, lines, row.group);
    if (!place) continue;
    if (const auto it = found.find(place->key); it != found.end())
      it->second.lines.push_back({place->line, {row.self, row.total}});
  }
  std::vector<ListedFunction> list;
  for (auto& [key, function] : found) {
    std::ranges::sort(function.lines, {}, &ListedLine::line);
    list.push_back(std::move(function));
  }
  std::ranges::stable_sort(list, [](const auto& a, const auto& b) { return a.value.total > b.value.total; });
  return list;
}

}  // namespace cprof::analyze
