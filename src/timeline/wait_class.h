// What a thread waits for, told by the kernel functions on its stack when it left the CPU. One table for every backend
// and view; the pipeline asks it once per stack. Pure.
#pragma once

#include <span>
#include <string_view>

#include "profile/profile.h"

namespace cprof::timeline {

// names: the kernel frames, outermost (the system call, fault or thread entry) first. The outermost frame that the table
// knows decides, except that a wait for memory inside file I/O is memory. kOther when none is known.
profile::WaitClass wait_class_of(std::span<const std::string_view> names);

}  // namespace cprof::timeline
