// What to record with perf events: the target, the events, how stacks are taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cprof::collect {

enum class StackMode : uint8_t {
  kDwarf,         // registers and a copy of the stack with each sample; the kernel's part as a callchain
  kFramePointer,  // the kernel walks both parts
  kNone,          // the instruction pointer only
};

// Exactly one kind of target, except that `cpus` narrows any of them.
struct PerfTarget {
  std::vector<std::string> command;
  std::vector<int32_t> pids, tids;
  bool all_cpus = false;
  std::string cgroup;     // a directory of the cgroup v2 (or perf_event) hierarchy
  std::vector<int> cpus;  // empty: every online CPU
};

struct PerfOptions {
  PerfTarget target;
  std::vector<std::string> events;      // empty: cycles where the machine has the counter, else cpu-clock
  uint64_t freq_hz = 999;               // kMaxFrequency: what the kernel allows
  uint64_t period = 0;                  // not 0: fixed count, for every event
  StackMode stack_mode = StackMode::kDwarf;
  uint32_t stack_bytes = 0;             // 0: 16,384, reopened at 65,528 when note_truncated() says so
  bool kernel = true;
  bool inherit = true;                  // follow threads and children made later
  bool off_cpu = false;                 // also where threads leave the CPU, and who wakes them
  uint32_t ring_pages = 0;              // data pages per CPU, a power of two; 0: as many as fit the purpose
  bool side_band_only = false;          // no samples: another backend takes them
  bool switches = true;                 // every switch of a thread from and to a CPU
  uint64_t delay_ns = 0;                // sampling begins this long after start(); the side band at once

  // Where the machine describes itself; tests point these elsewhere.
  std::string online_cpus_path = "/sys/devices/system/cpu/online";
  std::string stat_path = "/proc/stat";  // where there is no sysfs
  std::string paranoid_path = "/proc/sys/kernel/perf_event_paranoid";
  std::string mlock_kb_path = "/proc/sys/kernel/perf_event_mlock_kb";
  std::string max_rate_path = "/proc/sys/kernel/perf_event_max_sample_rate";
  std::string pid_namespace_path = "/proc/self/ns/pid";
  std::vector<std::string> tracefs = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
};

inline constexpr uint64_t kMaxFrequency = UINT64_MAX;

}  // namespace cprof::collect
