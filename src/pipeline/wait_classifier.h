// Gives each off-CPU interval its class, from the names of the kernel functions on its stack. Used by the pipeline when
// a run ends; the table of names is timeline's.
#pragma once

#include "object/kernel_symbols.h"
#include "profile/profile.h"

namespace cprof::pipeline {

// symbols: the kernel's of the recording; null: not known.
void classify_waits(profile::Profile& profile, const object::KernelSymbols* symbols);

}  // namespace cprof::pipeline
