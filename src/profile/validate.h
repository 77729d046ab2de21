// Checks that a Profile keeps the model's promises: every id in range, parents before children, samples in order. For
// tests of every reader and of the pipeline, and for whoever takes a Profile from untrusted bytes. Changes nothing.
#pragma once

#include "base/result.h"
#include "profile/profile.h"

namespace cprof::profile {

// The first broken promise, as "samples[3]: site 17 of 5"; nothing when all hold.
Result<void> validate(const Profile& profile);

}  // namespace cprof::profile
