#include "analyze/quality.h"

#include <algorithm>
#include <unordered_map>

#include "analyze/weights.h"
#include "profile/frame_name.h"

namespace cprof::analyze {
namespace {

using profile::Location;
using profile::LocationId;
using profile::Profile;
using profile::Sample;
using profile::StackEnd;

bool is_named(const Profile& profile, const profile::Line& line) {
  if (!line.function.valid()) return false;
  const std::string_view name = profile.text(profile.functions[line.function.index()].name);
  return !name.empty() && !profile::is_stand_in(name);
}

uint64_t unnamed_frames_at(const Profile& profile, LocationId id) {
  const auto lines = profile.lines_of(id);
  if (lines.empty()) return 1;
  return static_cast<uint64_t>(std::ranges::count_if(lines, [&](const auto& l) { return !is_named(profile, l); }));
}

// How many samples an untimed row stands for: where they were counted, rows of other metrics repeat them.
class RowSamples {
 public:
  explicit RowSamples(const Profile& profile) : samples_(find_metric(profile, "samples")) {}

  uint64_t operator()(const profile::Aggregate& row) const {
    if (!samples_.valid()) return 1;
    return row.metric == samples_ && row.value > 0 ? static_cast<uint64_t>(row.value) : 0;
  }

 private:
  profile::MetricId samples_;
};

// How many samples have each location in their stack, counting it as often as it stands there.
std::vector<uint64_t> uses_of_locations(const Profile& profile) {
  const RowSamples samples_of(profile);
  std::vector<uint64_t> below(profile.sites.size()), uses(profile.locations.size());
  for (const Sample& s : profile.samples)
    if (s.site.valid()) ++below[s.site.index()];
  for (const auto& a : profile.aggregates)
    if (a.site.valid()) below[a.site.index()] += samples_of(a);
  for (size_t i = profile.sites.size(); i-- > 0;) {
    uses[profile.sites[i].location.index()] += below[i];
    if (profile.sites[i].parent.valid()) below[profile.sites[i].parent.index()] += below[i];
  }
  return uses;
}

void count_names(const Profile& profile, StackQuality& quality) {
  const std::vector<uint64_t> uses = uses_of_locations(profile);
  std::unordered_map<StringId, uint64_t> by_path;
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    const Location& location = profile.locations[i];
    quality.frames += uses[i] * std::max<uint64_t>(1, location.line_count);
    const uint64_t unnamed = uses[i] * unnamed_frames_at(profile, LocationId(i));
    if (unnamed == 0) continue;
    quality.unnamed_frames += unnamed;
    by_path[location.mapping.valid() ? profile.mappings[location.mapping.index()].path : profile::kNoText] += unnamed;
  }
  for (const auto& [path, count] : by_path) quality.unnamed_by_module.push_back({profile.text(path), count});
  std::ranges::sort(quality.unnamed_by_module, [](const auto& a, const auto& b) {
    return a.unnamed_frames != b.unnamed_frames ? a.unnamed_frames > b.unnamed_frames : a.path < b.path;
  });
}

}  // namespace

StackQuality stack_quality(const Profile& profile) {
  StackQuality quality;
  quality.samples = profile.samples.size();
  for (const Sample& s : profile.samples) {
    ++quality.by_end[static_cast<size_t>(s.end)];
    if (!s.site.valid()) ++quality.without_stack;
    if (profile::had_user_stack(s.end)) ++quality.unwound;
    if (is_incomplete(s.end)) ++quality.incomplete;
  }
  const RowSamples samples_of(profile);
  for (const auto& a : profile.aggregates) {
    const uint64_t count = samples_of(a);
    quality.samples += count;
    quality.by_end[static_cast<size_t>(a.end)] += count;
    if (!a.site.valid()) quality.without_stack += count;
    if (profile::had_user_stack(a.end)) quality.unwound += count;
    if (is_incomplete(a.end)) quality.incomplete += count;
  }
  count_names(profile, quality);
  return quality;
}

}  // namespace cprof::analyze
