// Folds code into coarser places: each frame becomes the function, line, address or file that Granularity asks for, and is
// called so. Used by convert --granularity, whose files then show it in every viewer, and by diff, where two programs'
// frames meet by name. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "analyze/groups.h"
#include "profile/builder.h"
#include "profile/profile.h"

namespace cprof::analyze {

enum class Modules : uint8_t { kNone, kBaseNames, kPaths };  // what tells frames of one name apart

// Frames of one profile as places of a builder. Places of one name (and module) are one, also from several profiles.
class CoarseFrames {
 public:
  CoarseFrames(const profile::Profile& from, Granularity granularity, profile::ProfileBuilder& into, Modules modules);

  profile::LocationId of(profile::LocationId location);
  profile::LocationId truncated();  // the frame [truncated]

 private:
  profile::FunctionId function(uint32_t group);

  const profile::Profile& from_;
  profile::ProfileBuilder& into_;
  Modules modules_;
  Groups groups_;
  std::vector<profile::FunctionId> functions_;  // by group
  std::vector<profile::LocationId> locations_;  // by old number
};

// The same values and times with coarser frames.
profile::Profile coarsened(const profile::Profile& profile, Granularity granularity);

}  // namespace cprof::analyze
