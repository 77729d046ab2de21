// Opens a path as a process with another root directory would see it, never leaving that root, regular files only. The
// file is looked at (O_PATH) before it is opened for reading, so that a FIFO never hangs us and no device's driver is
// called. openat2 where the kernel has it (5.6), else a walk by hand with the same rules. Private to object.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cprof::object {

// root_fd: a directory. Absolute links and ".." stay below it; magic links (/proc/PID/fd) are refused.
Result<Fd> open_below_root(int root_fd, const std::string& path);

// The two ways of open_below_root to an O_PATH descriptor; they differ in the kernel they need.
Result<Fd> resolve_by_openat2(int root_fd, const std::string& path);
Result<Fd> resolve_by_walking(int root_fd, const std::string& path);

// Opens for reading what an O_PATH descriptor names, if that is a regular file.
Result<Fd> reopen_regular(const Fd& path_fd, const std::string& name);

}  // namespace cprof::object
