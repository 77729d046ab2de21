// cprof doctor: what this machine allows, each finding with the command that mends it. doctor_system.cc has the checks of
// the system around a recording.
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/file.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "cli/verb.h"
#include "collect/bpf/bpf_options.h"
#include "collect/bpf/sampler_object.h"
#include "collect/bpf/support.h"
#include "object/kernel_symbols.h"

namespace cprof::cli {
namespace {

uint64_t effective_capabilities() {
  auto status = read_text_file("/proc/self/status", 1 << 16);
  if (!status) return 0;
  size_t at = status->find("CapEff:");
  return at == std::string::npos ? 0 : strtoull(status->c_str() + at + 7, nullptr, 16);
}

std::optional<int> try_event(uint32_t type, uint64_t config, bool kernel) {
  perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.disabled = 1;
  attr.exclude_kernel = !kernel;
  attr.exclude_hv = 1;
  Fd fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  return fd ? std::nullopt : std::optional(errno);
}

Finding check_kernel() {
  utsname name;
  uname(&name);
  int major = 0, minor = 0;
  sscanf(name.release, "%d.%d", &major, &minor);
  bool old = major < 5 || (major == 5 && minor < 4);
  return {old ? Level::kBad : Level::kGood, "kernel", fmt::format("{} on {}", name.release, name.machine),
          old ? "cprof needs Linux 5.4 or later" : ""};
}

Finding check_sampling() {
  auto error = try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false);
  long paranoid = read_number("/proc/sys/kernel/perf_event_paranoid").value_or(-1);
  if (!error)
    return {Level::kGood, "sampling", fmt::format("perf_event_open works (kernel.perf_event_paranoid is {})", paranoid), ""};
  return {Level::kBad, "sampling", fmt::format("perf_event_open: {} (perf_event_paranoid is {})", strerror(*error), paranoid),
          paranoid > 2 ? "sudo sysctl kernel.perf_event_paranoid=2, or run as root"
                       : "allow perf_event_open in the container's seccomp profile, or run on the host"};
}

Finding check_kernel_samples() {
  if (!try_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true)) return {Level::kGood, "kernel stacks", "allowed", ""};
  return {Level::kNote, "kernel stacks", "not allowed: user stacks only",
          "sudo sysctl kernel.perf_event_paranoid=1, or run as root"};
}

Finding check_counters() {
  auto error = try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false);
  if (!error) return {Level::kGood, "hardware counters", "cycles can be sampled", ""};
  return {Level::kNote, "hardware counters", fmt::format("cycles: {}; cpu-clock is used instead", strerror(*error)),
          "none needed; virtual machines often have no counters"};
}

Finding check_whole_machine() {
  bool allowed = has_capability(kCapPerfmon) || has_capability(kCapSysAdmin) ||
                 read_number("/proc/sys/kernel/perf_event_paranoid").value_or(2) <= 0;
  if (allowed) return {Level::kGood, "whole machine (-a)", "allowed", ""};
  return {Level::kNote, "whole machine (-a)", "not allowed: own processes only",
          "run as root, or sudo setcap cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore+ep cprof"};
}

Finding check_other_processes() {
  if (has_capability(kCapSysPtrace)) return {Level::kGood, "files of other processes", "readable", ""};
  return {Level::kNote, "files of other processes", "only those of this user", "run as root, or give cprof cap_sys_ptrace"};
}

Finding check_map_files() {
  if (has_capability(kCapCheckpointRestore) || has_capability(kCapSysAdmin))
    return {Level::kGood, "deleted and hidden files", "readable through map_files", ""};
  return {Level::kNote, "deleted and hidden files", "mapped files that have no path any more stay unnamed",
          "run as root, or give cprof cap_checkpoint_restore"};
}

Finding check_kernel_symbols() {
  auto symbols = object::KernelSymbols::load();
  if (symbols && !symbols->hidden())
    return {Level::kGood, "kernel symbols", fmt::format("{} functions in /proc/kallsyms", symbols->size()), ""};
  return {Level::kNote, "kernel symbols", symbols ? "/proc/kallsyms hides its addresses" : symbols.error().message,
          "run as root, or sudo sysctl kernel.kptr_restrict=0"};
}

Finding check_ring_memory() {
  long kib = read_number("/proc/sys/kernel/perf_event_mlock_kb").value_or(0);
  rlimit limit;
  getrlimit(RLIMIT_MEMLOCK, &limit);
  bool unlimited = has_capability(14) || limit.rlim_cur == RLIM_INFINITY;  // CAP_IPC_LOCK
  std::string text = unlimited ? "not limited" : fmt::format("{} KiB per CPU, then {} KiB (ulimit -l)", kib, limit.rlim_cur / 1024);
  return {unlimited || kib >= 516 ? Level::kGood : Level::kNote, "ring memory", text,
          unlimited ? "" : "sudo sysctl kernel.perf_event_mlock_kb=4096 for larger rings"};
}

Finding check_rate() {
  long rate = read_number("/proc/sys/kernel/perf_event_max_sample_rate").value_or(0);
  return {rate >= 1000 ? Level::kGood : Level::kNote, "highest rate", fmt::format("{} samples per second", rate),
          rate >= 1000 ? "" : "sudo sysctl kernel.perf_event_max_sample_rate=100000"};
}

// Nobody knows whether the kernel takes the programs but the kernel.
Finding check_bpf() {
  const collect::BpfMachine machine = collect::read_bpf_machine();
  auto obstacle = collect::find_bpf_obstacle(machine);
  if (obstacle) return {Level::kNote, "eBPF backend", fmt::format("not used: {}", obstacle->reason), obstacle->mend};
  sampler_settings settings{};
  settings.filter = SAMPLER_TASKS;
  settings.max_depth = collect::kMostDepth;
  settings.ring_bytes = 1 << 20;
  settings.kernel_stacks = 1;
  settings.user_stacks = SAMPLER_USER_TABLES;
  auto object = collect::SamplerObject::load(settings);
  if (!object) return {Level::kNote, "eBPF backend", "not used: " + object.error().message, "--backend perf does without it"};
  const char* variant = (*object)->full_refused().empty() ? "" : ", by the programs for Linux 5.10";
  return {Level::kGood, "eBPF backend", fmt::format("used unless --backend perf is given{}", variant), ""};
}

// A counter's interrupt is an NMI where the kernel has no other way. No machine of the tests has a PMU.
Finding check_bpf_in_nmi() {
  constexpr const char* kSubject = "eBPF in NMIs";
  if (try_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false))
    return {Level::kGood, kSubject, "not met here: clocks do not interrupt by NMI", ""};
  return {Level::kNote, kSubject, "not verified: the tests of this version ran on no machine with hardware counters",
          "--backend perf, or -e cpu-clock, where that matters"};
}

Finding check_debug_files() {
  bool there = access("/usr/lib/debug/.build-id", R_OK) == 0;
  return {Level::kGood, "debug files", there ? "/usr/lib/debug has some" : "none in /usr/lib/debug",
          there ? "" : "install -dbg or -dbgsym packages for lines and inlined functions of system libraries"};
}

void print(const Finding& finding) {
  static constexpr const char* kMarks[] = {"ok  ", "note", "BAD "};
  fmt::print("{} {:<26} {}\n", kMarks[static_cast<size_t>(finding.level)], finding.subject, finding.text);
  if (!finding.mend.empty()) fmt::print("     {:<26} -> {}\n", "", finding.mend);
}

constexpr DoctorCheck kChecks[] = {check_kernel,       check_sampling,        check_kernel_samples, check_counters,
                                   check_whole_machine, check_other_processes, check_map_files,      check_kernel_symbols,
                                   check_ring_memory,  check_rate,            check_debug_files,    check_bpf,
                                   check_bpf_in_nmi};

}  // namespace

std::optional<long> read_number(const std::string& path) {
  auto text = read_text_file(path, 4096);
  if (!text) return std::nullopt;
  char* end = nullptr;
  long value = strtol(text->c_str(), &end, 10);
  return end == text->c_str() ? std::nullopt : std::optional(value);
}

bool has_capability(int number) { return effective_capabilities() >> number & 1; }

int doctor_main(std::vector<std::string> arguments) {
  CLI::App app("Tells what this machine allows, and how to mend what it does not.", "cprof doctor");
  if (auto status = parse(app, std::move(arguments))) return *status;
  bool is_bad = false;
  for (std::span<const DoctorCheck> checks : {std::span<const DoctorCheck>(kChecks), system_checks()}) {
    for (DoctorCheck check : checks) {
      const Finding finding = check();
      print(finding);
      is_bad |= finding.level == Level::kBad;
    }
  }
  return is_bad ? kFailed : kDone;
}

}  // namespace cprof::cli
