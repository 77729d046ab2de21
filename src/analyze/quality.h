// How good a recording's stacks and names are, so that nobody reads a broken profile without knowing. Counts raw
// samples (and rows of untimed profiles), whatever weight a view shows.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace cprof::analyze {

struct StackQuality {
  uint64_t samples = 0;        // all
  uint64_t without_stack = 0;  // shown as [unknown]
  uint64_t unwound = 0;        // had a user stack to unwind (profile::had_user_stack)
  uint64_t incomplete = 0;     // of those, how many did not reach their root
  std::array<uint64_t, static_cast<size_t>(profile::StackEnd::kCount)> by_end{};
  uint64_t frames = 0;  // over all samples, inlined ones too
  uint64_t unnamed_frames = 0;
  struct Module {
    std::string_view path;  // "" no file at all
    uint64_t unnamed_frames = 0;
  };
  std::vector<Module> unnamed_by_module;  // most first
};

StackQuality stack_quality(const profile::Profile& profile);

}  // namespace cprof::analyze
