// What a recording that was cut off still lacks: names of its code, classes of its waits. Called by load. A file is used
// only when its build-id is the recorded one; the kernel's symbols only when this is still the boot of the recording.
#pragma once

#include "pipeline/pipeline.h"
#include "profile/profile.h"

namespace cprof::pipeline {

// Always says in the diagnostics that the recording was cut off; names only with options.symbolize.
void name_unfinished(profile::Profile& profile, const Options& options);

}  // namespace cprof::pipeline
