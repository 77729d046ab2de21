// What a module's name tells about its code, and names made fit for one line of text. Used by the readers and writers
// of this folder; pure.
#pragma once

#include <string>
#include <string_view>

#include "profile/profile.h"

namespace cprof::format {

// Kernel, JIT or user code, judged by the name of the file or region as perf and pprof give it: "[kernel.kallsyms]",
// "/usr/lib/debug/boot/vmlinux-6.1.0", "nfs.ko.xz", "/tmp/perf-10.map", "jitted-10-3.so", "/usr/bin/app".
profile::FrameKind kind_of_module(std::string_view path);

// Appends text with control characters as spaces; `;` as `:` too when it separates frames.
void append_clean(std::string& out, std::string_view text, bool is_frame);

}  // namespace cprof::format
