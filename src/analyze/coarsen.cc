#include "analyze/coarsen.h"

#include "profile/frame_name.h"
#include "profile/transfer.h"

namespace cprof::analyze {

using profile::FunctionId;
using profile::LocationId;
using profile::Profile;

namespace {

// "[libx.so+0x40]" says where code is, not what it is, and would be folded once more; "libx.so+0x40" is a name.
std::string as_name(std::string text) {
  const bool is_place = text != profile::kUnknownFrame && profile::is_stand_in(text);
  return is_place ? text.substr(1, text.size() - 2) : text;
}

profile::FrameKind coarse_kind(profile::FrameKind kind) {
  return kind == profile::FrameKind::kUnknown ? profile::FrameKind::kUser : kind;
}

}  // namespace

CoarseFrames::CoarseFrames(const Profile& from, Granularity granularity, profile::ProfileBuilder& into, Modules modules)
    : from_(from),
      into_(into),
      modules_(modules),
      groups_(from, granularity),
      functions_(groups_.size()),
      locations_(from.locations.size()) {}

FunctionId CoarseFrames::function(uint32_t group) {
  FunctionId& known = functions_[group];
  if (known.valid()) return known;
  const StringId name = into_.intern(as_name(groups_.name(group).text));
  return known = into_.function({.name = name, .system_name = name});
}

LocationId CoarseFrames::of(LocationId id) {
  LocationId& known = locations_[id.index()];
  if (known.valid()) return known;
  const profile::Location& row = from_.locations[id.index()];
  std::vector<profile::Line> lines;
  for (uint16_t line = 0; line < std::max<uint16_t>(1, row.line_count); ++line)
    lines.push_back({.function = function(groups_.of(id, line))});
  profile::MappingId mapping;
  if (modules_ != Modules::kNone && row.mapping.valid()) {
    std::string_view path = from_.text(from_.mappings[row.mapping.index()].path);
    if (modules_ == Modules::kBaseNames) path = profile::base_name(path);
    mapping = into_.mapping({.path = into_.intern(path)});
  }
  return known = into_.named_location(mapping, coarse_kind(row.kind), lines);
}

LocationId CoarseFrames::truncated() {
  const StringId name = into_.intern(profile::kTruncatedFrame);
  const profile::Line line{.function = into_.function({.name = name, .system_name = name})};
  return into_.named_location({}, profile::FrameKind::kUser, {&line, 1});
}

Profile coarsened(const Profile& profile, Granularity granularity) {
  profile::ProfileBuilder into;
  CoarseFrames frames(profile, granularity, into, Modules::kPaths);
  std::vector<LocationId> locations(profile.locations.size());
  for (size_t i = 0; i < locations.size(); ++i) locations[i] = frames.of(LocationId(i));
  profile::SharedPlaces places;
  profile::Transfer transfer(profile, into, places);
  for (size_t i = 0; i < locations.size(); ++i) transfer.set(LocationId(i), locations[i]);
  profile::copy_all(profile, transfer, into);
  return into.take();
}

}  // namespace cprof::analyze
