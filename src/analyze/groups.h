// What a row of a table or a node of a tree stands for: a function, a line, an address or a source file. Views fold frames into groups
// by number; names are made only for what is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/frames.h"
#include "profile/profile.h"
#include "profile/row_index.h"

namespace cprof::analyze {

enum class Granularity : uint8_t {
  kFunctions,  // a function of one file; code without names: one group per module
  kLines,      // a function's source line; code without names: one group per module
  kAddresses,  // an address, and each function inlined there
  kFiles,      // a source file; code without one: one group per module
};
std::string_view name_of(Granularity granularity);  // "functions"
std::optional<Granularity> granularity_from(std::string_view name);

struct GroupName {
  std::string text;         // "f(int)", "f(int) x.cc:12", "0x4080 f(int)", "dir/x.cc", "[libx.so]"
  std::string_view module;  // base name of the mapped file, "" unknown
  profile::FrameKind kind = profile::FrameKind::kUnknown;
  bool is_inlined = false;  // everywhere it was seen
};

class Groups {
 public:
  static constexpr uint32_t kUnknown = 0, kTruncated = 1;  // [unknown], [truncated]

  Groups(const profile::Profile& profile, Granularity granularity);

  uint32_t of(profile::LocationId location, uint16_t line) const { return groups_[first_[location.index()] + line]; }
  size_t size() const { return rows_.size(); }
  GroupName name(uint32_t group) const;
  // A frame that stands for the group; none for [unknown] and [truncated].
  std::optional<std::pair<profile::LocationId, uint16_t>> frame_of(uint32_t group) const;

 private:
  struct Row {
    profile::LocationId location{};
    uint16_t line = 0;
    bool is_named = false;
    bool is_inlined = true;
  };
  uint32_t intern(profile::LocationId location, uint16_t line, profile::RowIndex& index);

  const profile::Profile& profile_;
  Granularity granularity_;
  std::vector<uint32_t> first_;   // by location: index into groups_
  std::vector<uint32_t> groups_;  // one per line of each location, one for a location without lines
  std::vector<Row> rows_;         // one frame that stands for each group
};

}  // namespace cprof::analyze
