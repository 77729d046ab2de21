#include "analyze/groups.h"

#include <fmt/format.h>

#include <array>

namespace cprof::analyze {
namespace {

using profile::Line;
using profile::Location;
using profile::LocationId;
using profile::Profile;

constexpr std::array<std::string_view, 4> kGranularities = {"functions", "lines", "addresses", "files"};

StringId path_of(const Profile& profile, const Location& location) {
  return location.mapping.valid() ? profile.mappings[location.mapping.index()].path : StringId();
}

// The function's name, or nothing when it is only a stand-in.
const Line* named_line(const Profile& profile, LocationId id, uint16_t line) {
  const auto lines = profile.lines_of(id);
  if (line >= lines.size() || !lines[line].function.valid()) return nullptr;
  const std::string_view name = profile.text(profile.functions[lines[line].function.index()].name);
  return name.empty() || profile::is_stand_in(name) ? nullptr : &lines[line];
}

struct Key {
  uint32_t owner = 0, detail = 0;
  StringId path{};
  uint64_t address = 0;
  bool named = false, kernel = false;
  bool operator==(const Key&) const = default;
};

Key key_of(const Profile& profile, Granularity granularity, LocationId id, uint16_t line) {
  const Location& location = profile.locations[id.index()];
  Key key{.path = path_of(profile, location), .kernel = location.kind == profile::FrameKind::kKernel};
  if (granularity == Granularity::kAddresses) {
    key.address = location.file_address != 0 ? location.file_address : location.address;
    key.detail = line;
  }
  if (const Line* named = named_line(profile, id, line)) {
    const StringId file = profile.functions[named->function.index()].file;
    if (granularity == Granularity::kFiles) {
      key.named = file.valid() && file != profile::kNoText;
      key.owner = key.named ? file.value : 0;
      return key;
    }
    key.named = true;
    key.owner = named->function.value;
    if (granularity == Granularity::kLines) key.detail = named->line;
  }
  return key;
}

uint64_t hash_of(const Key& key) {
  uint64_t hash = profile::hash_join(1, uint64_t{key.owner} << 32 | key.detail);
  hash = profile::hash_join(hash, uint64_t{key.path.value} << 2 | uint64_t{key.named} << 1 | uint64_t{key.kernel});
  return profile::hash_join(hash, key.address);
}

std::string bracketed(std::string_view module) {
  if (module.empty()) return std::string(profile::kUnknownFrame);
  return module.front() == '[' ? std::string(module) : fmt::format("[{}]", module);
}

}  // namespace

std::string_view name_of(Granularity granularity) { return kGranularities[static_cast<size_t>(granularity)]; }

std::optional<Granularity> granularity_from(std::string_view name) {
  for (size_t i = 0; i < kGranularities.size(); ++i)
    if (kGranularities[i] == name) return static_cast<Granularity>(i);
  return std::nullopt;
}

Groups::Groups(const Profile& profile, Granularity granularity)
    : profile_(profile), granularity_(granularity), first_(profile.locations.size()), rows_(2) {
  rows_[kUnknown].is_inlined = rows_[kTruncated].is_inlined = false;
  profile::RowIndex index;
  for (size_t i = 0; i < profile.locations.size(); ++i) {
    first_[i] = static_cast<uint32_t>(groups_.size());
    const uint16_t count = std::max<uint16_t>(1, profile.locations[i].line_count);
    for (uint16_t line = 0; line < count; ++line) groups_.push_back(intern(LocationId(i), line, index));
  }
}

uint32_t Groups::intern(LocationId id, uint16_t line, profile::RowIndex& index) {
  const Key key = key_of(profile_, granularity_, id, line);
  const bool is_nowhere = !key.named && !key.path.valid() && !key.kernel;
  if (is_nowhere && (granularity_ != Granularity::kAddresses || key.address == 0)) return kUnknown;
  auto equal = [&](uint32_t row) {
    return key_of(profile_, granularity_, rows_[row].location, rows_[row].line) == key;
  };
  const uint32_t group = index.find_or_add(hash_of(key), equal, [&] {
    rows_.push_back({.location = id, .line = line, .is_named = key.named});
    return static_cast<uint32_t>(rows_.size() - 1);
  });
  if (line + 1 >= profile_.locations[id.index()].line_count) rows_[group].is_inlined = false;
  return group;
}

std::optional<std::pair<LocationId, uint16_t>> Groups::frame_of(uint32_t group) const {
  if (group == kUnknown || group == kTruncated) return std::nullopt;
  return std::pair(rows_[group].location, rows_[group].line);
}

GroupName Groups::name(uint32_t group) const {
  if (group == kUnknown) return {.text = std::string(profile::kUnknownFrame), .module = {}};
  if (group == kTruncated) return {.text = std::string(profile::kTruncatedFrame), .module = {}};
  const Row& row = rows_[group];
  const Location& location = profile_.locations[row.location.index()];
  GroupName name{.text = {}, .module = {}, .kind = location.kind, .is_inlined = row.is_inlined};
  if (const StringId path = path_of(profile_, location); path.valid())
    name.module = profile::base_name(profile_.text(path));

  const bool by_address = granularity_ == Granularity::kAddresses;
  if (!row.is_named) {
    if (name.module.empty() && location.kind == profile::FrameKind::kKernel) name.module = "[kernel]";
    name.text = by_address ? stand_in_name(profile_, location) : bracketed(name.module);
    return name;
  }
  const Line& line = profile_.lines_of(row.location)[row.line];
  const profile::Function& function = profile_.functions[line.function.index()];
  name.text = profile_.text(granularity_ == Granularity::kFiles ? function.file : function.name);
  if (granularity_ == Granularity::kFiles) return name;
  if (by_address)
    name.text =
        fmt::format("{:#x} {}", location.file_address != 0 ? location.file_address : location.address, name.text);
  if (granularity_ != Granularity::kFunctions && line.line != 0)
    name.text += fmt::format(" {}:{}", profile::base_name(profile_.text(function.file)), line.line);
  return name;
}

}  // namespace cprof::analyze
