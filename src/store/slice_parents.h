// Which slice lies around which: the model keeps depths only, SQL wants the row of the parent. Used by the writer. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/profile.h"

namespace cprof::store {

// By slice, from `first` on; slices before that are not looked at.
std::vector<std::optional<int64_t>> slice_parents(const profile::Profile& profile, size_t first);

}  // namespace cprof::store
