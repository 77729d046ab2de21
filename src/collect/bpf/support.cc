#include "collect/bpf/support.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/file.h"

namespace cprof::collect {
namespace {

constexpr int kCapSysAdmin = 21, kCapPerfmon = 38, kCapBpf = 39, kCapCheckpointRestore = 40;
constexpr const char* kSetcap = "sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore+ep cprof";

struct Version {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const Version&) const = default;
};

Version parse_version(const char* text) {
  Version v;
  sscanf(text, "%d.%d.%d", &v.major, &v.minor, &v.patch);
  return v;
}

// Debian's release has a numbering of its own; the stable version is in the version line: "... Debian 6.1.192-1 (...)".
Version version_of(const BpfMachine& machine) {
  constexpr const char* kDebian = "Debian ";
  const char* found = strstr(machine.version.c_str(), kDebian);
  Version debian = found ? parse_version(found + strlen(kDebian)) : Version{};
  return debian.major ? debian : parse_version(machine.release.c_str());
}

bool has(const BpfMachine& machine, int capability) {
  return (machine.capabilities >> capability & 1) || (machine.capabilities >> kCapSysAdmin & 1);
}

// Kernels where reading user memory in an interrupt can lock up the whole machine: begun in 5.19, mended by
// "mm: Fix copy_from_user_nofault()" in 6.4, 6.3.10 and 6.1.36. It cannot be tried, so what may have it is refused.
bool may_lock_up(Version v) {
  if (v < Version{5, 19, 0} || v >= Version{6, 4, 0}) return false;
  if (v.major == 6 && v.minor == 3) return v.patch < 10;
  if (v.major == 6 && v.minor == 1) return v.patch < 36;
  return true;
}

// The memory of maps: of the process's limit until memory cgroups took it over.
bool counts_as_locked(Version v) { return v < Version{5, 11, 0}; }

// In the order in which a person would meet them: what cannot be mended here, then rights.
using Check = std::optional<Obstacle> (*)(const BpfMachine&);

std::optional<Obstacle> check_machine(const BpfMachine& m) {
  if (m.machine == "x86_64") return {};
  return Obstacle{fmt::format("there are no BPF programs for {}", m.machine), ""};
}

std::optional<Obstacle> check_version(const BpfMachine& m) {
  Version v = version_of(m);
  if (v < Version{5, 10, 0}) return Obstacle{fmt::format("Linux {} is too old, the BPF programs need 5.10", m.release), ""};
  if (!may_lock_up(v)) return {};
  return Obstacle{fmt::format("Linux {} can lock up when a BPF program reads user memory", m.release),
                  "use 6.1.36, 6.3.10, 6.4 or later"};
}

std::optional<Obstacle> check_btf(const BpfMachine& m) {
  if (m.has_btf) return {};
  return Obstacle{"the kernel has no type information (/sys/kernel/btf/vmlinux)", "use a kernel with CONFIG_DEBUG_INFO_BTF"};
}

std::optional<Obstacle> check_lockdown(const BpfMachine& m) {
  if (m.lockdown != "confidentiality") return {};
  return Obstacle{"kernel lockdown=confidentiality forbids BPF programs to read memory", "boot with lockdown=integrity or none"};
}

std::optional<Obstacle> check_namespace(const BpfMachine& m) {
  if (!m.in_user_namespace) return {};
  return Obstacle{"cprof runs in a user namespace, whose capabilities do not count for BPF", "run it on the host"};
}

std::optional<Obstacle> check_pid_namespace(const BpfMachine& m) {
  if (!m.in_pid_namespace) return {};
  return Obstacle{"cprof runs in a pid namespace (a container)", "run it on the host, or with the host's pids"};
}

std::optional<Obstacle> check_bpf_right(const BpfMachine& m) {
  if (has(m, kCapBpf)) return {};
  return Obstacle{"CAP_BPF is missing", fmt::format("run as root or: {}", kSetcap)};
}

std::optional<Obstacle> check_perf_right(const BpfMachine& m) {
  if (m.paranoid >= 3 && !(m.capabilities >> kCapSysAdmin & 1))
    return Obstacle{fmt::format("kernel.perf_event_paranoid is {}, which wants CAP_SYS_ADMIN", m.paranoid),
                    "run as root or: sudo sysctl kernel.perf_event_paranoid=2"};
  if (has(m, kCapPerfmon)) return {};
  return Obstacle{"CAP_PERFMON is missing", fmt::format("run as root or: {}", kSetcap)};
}

std::optional<Obstacle> check_map_files(const BpfMachine& m) {
  if (has(m, kCapCheckpointRestore)) return {};
  return Obstacle{"/proc/PID/map_files cannot be read without CAP_CHECKPOINT_RESTORE, so unwind tables would be missing",
                  fmt::format("run as root or: {}", kSetcap)};
}

constexpr Check kChecks[] = {check_machine,   check_version,    check_btf,       check_lockdown,     check_namespace,
                             check_pid_namespace, check_bpf_right, check_perf_right, check_map_files};

// "none [integrity] confidentiality": the bracketed one holds.
std::string chosen_word(const std::string& text) {
  size_t open = text.find('['), close = text.find(']');
  return open == text.npos || close == text.npos || close < open ? std::string() : text.substr(open + 1, close - open - 1);
}

uint64_t effective_capabilities(const std::string& status) {
  size_t at = status.find("CapEff:");
  return at == status.npos ? 0 : strtoull(status.c_str() + at + 7, nullptr, 16);
}

bool is_first_namespace(const std::string& uid_map) {
  unsigned long long inside = 1, outside = 1, count = 0;
  return sscanf(uid_map.c_str(), "%llu %llu %llu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
         count == 4294967295ull;
}

// The first one's inode number is fixed (include/linux/proc_ns.h, PROC_PID_INIT_INO).
bool is_later_namespace(const std::string& link) {
  char target[64] = "";
  ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
  return length > 0 && std::string_view(target, static_cast<size_t>(length)) != "pid:[4026531836]";
}

}  // namespace

BpfMachine read_bpf_machine(const BpfMachinePaths& paths) {
  BpfMachine machine;
  utsname names{};
  uname(&names);
  machine.release = names.release;
  machine.version = names.version;
  machine.machine = names.machine;
  machine.has_btf = access(paths.btf.c_str(), R_OK) == 0;
  machine.lockdown = chosen_word(read_text_file(paths.lockdown, 4096).value_or(""));
  if (auto text = read_text_file(paths.paranoid, 64)) machine.paranoid = strtol(text->c_str(), nullptr, 10);
  machine.capabilities = effective_capabilities(read_text_file(paths.status, 1 << 16).value_or(""));
  auto uid_map = read_text_file(paths.uid_map, 1 << 16);
  machine.in_user_namespace = uid_map && !is_first_namespace(*uid_map);
  machine.in_pid_namespace = is_later_namespace(paths.pid_namespace);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) machine.memlock_bytes = limit.rlim_cur;
  return machine;
}

std::optional<Obstacle> find_bpf_obstacle(const BpfMachine& machine) {
  for (Check check : kChecks)
    if (auto obstacle = check(machine)) return obstacle;
  return std::nullopt;
}

Obstacle explain_bpf_refusal(int error_number, const BpfMachine& machine) {
  if (auto obstacle = find_bpf_obstacle(machine)) return *obstacle;
  std::string what = fmt::format("the kernel refused the BPF program: {}", strerror(error_number));
  if (error_number != EPERM && error_number != EACCES) return {what, ""};
  if (error_number == EPERM && counts_as_locked(version_of(machine)) && machine.memlock_bytes != UINT64_MAX)
    return {fmt::format("{}; before 5.11 its maps count as locked memory, and RLIMIT_MEMLOCK is {} KiB", what, machine.memlock_bytes / 1024),
            "ulimit -l unlimited, as root or with CAP_SYS_RESOURCE"};
  return {what, "allow bpf() in the container's seccomp profile, or run on the host"};
}

}  // namespace cprof::collect
