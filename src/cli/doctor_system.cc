// Checks of `cprof doctor` on the system around a recording: rights, namespaces, limits, wake-ups, caches.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "cli/doctor.h"
#include "collect/bpf/support.h"
#include "collect/perf/event_spec.h"
#include "collect/perf/perf_options.h"
#include "unwind/cfi/module_table.h"

namespace cprof::cli {
namespace {

struct Capability {
  int number;
  const char* name;
};
constexpr Capability kUsed[] = {{kCapPerfmon, "cap_perfmon"}, {kCapBpf, "cap_bpf"}, {kCapSysPtrace, "cap_sys_ptrace"},
                                {kCapCheckpointRestore, "cap_checkpoint_restore"}, {kCapSyslog, "cap_syslog"}};

Finding check_capabilities() {
  std::string missing;
  for (const Capability& capability : kUsed)
    if (!has_capability(capability.number)) missing += fmt::format("{}{}", missing.empty() ? "" : ",", capability.name);
  if (has_capability(kCapSysAdmin)) return {Level::kGood, "capabilities", "cap_sys_admin", ""};
  if (missing.empty()) return {Level::kGood, "capabilities", "all that are used", ""};
  return {Level::kNote, "capabilities", "missing: " + missing, fmt::format("run as root, or sudo setcap {}+ep cprof", missing)};
}

Finding check_namespaces() {
  const collect::BpfMachine machine = collect::read_bpf_machine();
  if (!machine.in_pid_namespace && !machine.in_user_namespace) return {Level::kGood, "namespaces", "those of the host", ""};
  const char* where = machine.in_user_namespace ? "a user namespace" : "a pid namespace (a container)";
  return {Level::kNote, "namespaces", fmt::format("{}: processes outside of it cannot be seen", where), "run it on the host"};
}

// Reading the memory of a process that is neither a child nor a descendant.
Finding check_live_memory() {
  const long scope = read_number("/proc/sys/kernel/yama/ptrace_scope").value_or(0);
  if (scope == 0 || has_capability(kCapSysPtrace)) return {Level::kGood, "memory of processes", "readable", ""};
  return {Level::kNote, "memory of processes", fmt::format("of started commands only (kernel.yama.ptrace_scope is {})", scope),
          "run as root, or sudo sysctl kernel.yama.ptrace_scope=0"};
}

Finding check_open_files() {
  constexpr rlim_t kEnough = 4096;  // an event is a descriptor, and each thread of -t and -p has some on each CPU
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string text = limit.rlim_max == RLIM_INFINITY ? "not limited" : fmt::format("{} at most", limit.rlim_max);
  const bool is_enough = limit.rlim_max >= kEnough;
  return {is_enough ? Level::kGood : Level::kNote, "open files", text,
          is_enough ? "" : "ulimit -Hn 65536, as root: perf events of many threads need one on each CPU"};
}

Finding check_kernel_depth() {
  constexpr long kDefault = 127;
  const long depth = read_number("/proc/sys/kernel/perf_event_max_stack").value_or(kDefault);
  const bool is_enough = depth >= kDefault;
  return {is_enough ? Level::kGood : Level::kNote, "kernel stack depth", fmt::format("{} frames", depth),
          is_enough ? "" : "sudo sysctl kernel.perf_event_max_stack=127"};
}

// The kernel lowers the highest rate for good when interrupts take more than this share.
Finding check_cpu_share() {
  constexpr long kDefault = 25;
  const long percent = read_number("/proc/sys/kernel/perf_cpu_time_max_percent").value_or(kDefault);
  const std::string text = percent == 0 || percent == 100 ? "not limited" : fmt::format("{} % of a CPU", percent);
  const bool is_low = percent != 0 && percent < kDefault;
  return {is_low ? Level::kNote : Level::kGood, "time for samples", text,
          is_low ? "sudo sysctl kernel.perf_cpu_time_max_percent=25" : ""};
}

Finding check_wakeups() {
  auto spec = collect::find_wakeup_spec(collect::PerfOptions().tracefs, "/proc/self/ns/pid");
  if (spec) return {Level::kGood, "wake-ups (--off-cpu)", "the tracepoint sched:sched_waking can be read", ""};
  const bool is_root = geteuid() == 0;
  return {Level::kNote, "wake-ups (--off-cpu)", "not seen by perf events: runnable time counts as waiting",
          collect::read_bpf_machine().in_pid_namespace ? "run it on the host"
          : is_root                                    ? "mount -t tracefs tracefs /sys/kernel/tracing"
                                                       : "run as root"};
}

Finding check_cgroups() {
  if (access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0) return {Level::kGood, "cgroups", "version 2, below /sys/fs/cgroup", ""};
  if (access("/sys/fs/cgroup/perf_event", R_OK) == 0)
    return {Level::kGood, "cgroups", "version 1: --cgroup takes paths below /sys/fs/cgroup/perf_event", ""};
  return {Level::kNote, "cgroups", "not mounted: no --cgroup", "sudo mount -t cgroup2 none /sys/fs/cgroup"};
}

Finding check_btf() {
  if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) return {Level::kGood, "kernel types (BTF)", "/sys/kernel/btf/vmlinux", ""};
  return {Level::kNote, "kernel types (BTF)", "none: no eBPF backend", "use a kernel with CONFIG_DEBUG_INFO_BTF"};
}

Finding check_bpf_compiler() {
  const auto enabled = read_number("/proc/sys/net/core/bpf_jit_enable");
  if (!enabled || *enabled > 0) return {Level::kGood, "BPF compiler", enabled ? "on" : "not known", ""};
  return {Level::kNote, "BPF compiler", "off: each sample takes several times as long", "sudo sysctl net.core.bpf_jit_enable=1"};
}

Finding check_clock() {
  const std::string path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  std::string name = read_text_file(path, 64).value_or("");
  while (name.ends_with('\n')) name.pop_back();
  const bool is_slow = name == "hpet" || name == "acpi_pm" || name == "jiffies" || name == "refined-jiffies";
  if (!is_slow) return {Level::kGood, "clock", name.empty() ? "not known" : name, ""};
  return {Level::kNote, "clock", fmt::format("{}: slow or coarse to read, and programs read it often", name),
          "the kernel's log says why it does not trust the TSC"};
}

// Where the directory, or the deepest one of its path that there is, can be written.
bool can_be_made(std::filesystem::path path) {
  while (!path.empty() && access(path.c_str(), F_OK) != 0 && path != path.parent_path()) path = path.parent_path();
  return !path.empty() && access(path.c_str(), W_OK) == 0;
}

Finding check_unwind_cache() {
  const std::string directory = unwind::TableCache::default_directory();
  if (!directory.empty() && can_be_made(directory)) return {Level::kGood, "unwind tables", "kept in " + directory, ""};
  return {Level::kNote, "unwind tables", "not kept: each run compiles them anew", "set XDG_CACHE_HOME to a directory of this user"};
}

Finding check_debuginfod() {
  const char* servers = getenv("DEBUGINFOD_URLS");
  if (servers && *servers) return {Level::kGood, "debuginfod", fmt::format("{}: asked only with --debuginfod", servers), ""};
  return {Level::kGood, "debuginfod", "no server is set",
          "debug files of a distribution: --debuginfod=URL, as https://debuginfod.debian.net"};
}

constexpr DoctorCheck kSystemChecks[] = {check_capabilities, check_namespaces, check_live_memory, check_open_files, check_kernel_depth,
                                   check_cpu_share,    check_wakeups,    check_cgroups,     check_btf,        check_bpf_compiler,
                                   check_clock,        check_unwind_cache, check_debuginfod};

}  // namespace

std::span<const DoctorCheck> system_checks() { return kSystemChecks; }

}  // namespace cprof::cli
