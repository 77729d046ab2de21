// What this machine can say about a recording: the same numbers of processes, devices and inodes, and the same kernel, mean
// something else elsewhere. A recording that does not tell where it was made is taken as ours. Used by the pipeline only.
#pragma once

#include "event/event.h"

namespace cprof::pipeline {

struct Surroundings {
  bool same_machine = true;  // /proc/PID, inodes and /tmp are those of the recording
  bool same_kernel = true;   // so are the kernel's symbols and the vdso
  bool same_clock = true;    // its times are those that programs write down: CLOCK_MONOTONIC
};

Surroundings surroundings_of(const event::SessionInfo& info);

}  // namespace cprof::pipeline
