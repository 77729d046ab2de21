// Gives each off-CPU interval its class, from the names of the kernel functions on its stack. Used by the pipeline when
// a run ends; the table of names is timeline's.
#pragma once

#include "pipeline/stack_interner.h"
#include "profile/profile.h"

namespace cprof::pipeline {

void classify_waits(profile::Profile& profile, StackInterner& interner);

}  // namespace cprof::pipeline
