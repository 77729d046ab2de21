// Names for a profile that was read with addresses and mappings but without names (or with those of symbol tables only):
// files by path and build-id, lines and inlined functions by symbolize. Called by load for finished profiles. What already
// has lines stays as it is; a location that gets no name stays as it is too, and is counted.
#pragma once

#include "pipeline/pipeline.h"
#include "profile/profile.h"

namespace cprof::pipeline {

// Of the options: sources, demangle, inline_frames and the kernel's symbols.
void name_profile(profile::Profile& profile, const Options& options);

// Says in the profile which boot of which machine its kernel's addresses are of: until then they mean the same there.
void note_boot(profile::RunInfo& run);

}  // namespace cprof::pipeline
