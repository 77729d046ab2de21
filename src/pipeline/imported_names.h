// Names of profiles that other tools made: those that arrive as the linker's are demangled, as pprof itself does on reading.
// Called by load for formats that tell a function's own name from the linker's.
#pragma once

#include "profile/profile.h"
#include "symbolize/symbolizer.h"

namespace cprof::pipeline {

// Only names that are still the linker's: what a tool has already made readable stays as it is.
void demangle_imported(profile::Profile& profile, symbolize::DemangleStyle style);

}  // namespace cprof::pipeline
