// Which container a cgroup is: its path tells, since Docker, containerd, CRI-O, Podman, LXC and systemd-nspawn put the
// container's id or name into it. Used to find a container, to label what is recorded, and to filter by it. Pure text.
#pragma once

#include <string>
#include <string_view>

namespace cprof {

// The whole id (64 hexadecimal digits), else the name; "" for a cgroup that is no container's. Of nested ones the innermost.
std::string container_id_of(std::string_view cgroup);
// What people call it: the first 12 digits of an id, as `docker ps` shows it, else the name.
std::string container_of(std::string_view cgroup);
// Whether the cgroup is that container's, or lies in it; an id may be cut short.
bool is_in_container(std::string_view cgroup, std::string_view id_or_name);

}  // namespace cprof
