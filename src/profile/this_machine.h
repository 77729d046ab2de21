// What a profile that is made here says of this machine. Called by whatever makes one of its own, not of a recording's events.
#pragma once

#include "profile/profile.h"

namespace cprof::profile {

// Tool, host, kernel, CPUs, and the real time of now as that of the start.
void describe_this_machine(RunInfo& run);

}  // namespace cprof::profile
