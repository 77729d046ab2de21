// Control groups: which one a process is in, and where one that somebody named lies in the cgroup file system. Both
// versions of the hierarchy; of version 1 the one of perf_event is looked at. Used by the pipeline, and by verbs with targets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::object {

// "/system.slice/ssh.service": of the group of a process (or thread) that lives, as this process's cgroup namespace shows it.
Result<std::string> read_cgroup(int32_t pid);
// The same of the text of /proc/PID/cgroup: a line that names a container, else version 2's; "" when there is none.
std::string cgroup_in(std::string_view text);

// Where cgroup file systems are mounted that perf events take: perf_event of version 1 if there is one, then version 2.
std::vector<std::string> cgroup_roots();
std::vector<std::string> cgroup_roots_in(std::string_view mounts);  // of the text of /proc/mounts

// The directory of a group: an absolute one, or a path below one of the roots as read_cgroup() gives it.
Result<std::string> find_cgroup(const std::string& path, const std::vector<std::string>& roots);
// The directory of a container's group, by its id, the beginning of its id, or its name.
Result<std::string> find_container(const std::string& id_or_name, const std::vector<std::string>& roots);

}  // namespace cprof::object
