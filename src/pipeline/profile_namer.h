// Names for a profile that was read with addresses and mappings but without names (or with those of symbol tables only):
// files by path and build-id, lines and inlined functions by symbolize. Called by load for finished profiles, and for
// recordings that were cut off (unfinished). What already has lines stays as it is; a location that gets no name stays as
// it is too, and is counted.
#pragma once

#include <optional>

#include "object/kernel_symbols.h"
#include "pipeline/pipeline.h"
#include "profile/profile.h"

namespace cprof::pipeline {

// What the caller knows about where the profile was made.
struct Provenance {
  bool trust_paths = true;   // without a build-id, what lies at a path now is taken for the file
  bool this_boot = false;    // the kernel's addresses are of this boot; else note_boot() has to have said so
};

// Of the options: sources, demangle, inline_frames and the kernel's symbols. Gives those symbols when it named kernel
// frames by them.
std::optional<object::KernelSymbols> name_profile(profile::Profile& profile, const Options& options,
                                                  const Provenance& provenance = {});

// Says in the profile which boot of which machine its kernel's addresses are of: until then they mean the same there.
void note_boot(profile::RunInfo& run);

}  // namespace cprof::pipeline
