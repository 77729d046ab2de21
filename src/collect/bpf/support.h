// Whether this machine lets BPF programs sample here, and if not, why and what mends it. Called by the session to choose
// a backend, by the loader to explain a refusal, and by doctor. Decides from what was read; loads and opens nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cprof::collect {

// What the decision rests on.
struct BpfMachine {
  std::string release, version;     // uname -r and -v
  std::string machine;              // uname -m
  bool has_btf = false;             // /sys/kernel/btf/vmlinux can be read
  std::string lockdown;             // "none", "integrity", "confidentiality"; empty: not known
  long paranoid = 2;                // kernel.perf_event_paranoid
  uint64_t capabilities = 0;        // effective
  bool in_user_namespace = false;   // capabilities there are none to the kernel
  bool in_pid_namespace = false;    // what BPF calls a process is called by another number here
  uint64_t memlock_bytes = UINT64_MAX;  // RLIMIT_MEMLOCK; UINT64_MAX: no limit
};

// Where the machine describes itself; tests point these elsewhere.
struct BpfMachinePaths {
  std::string btf = "/sys/kernel/btf/vmlinux";
  std::string lockdown = "/sys/kernel/security/lockdown";
  std::string paranoid = "/proc/sys/kernel/perf_event_paranoid";
  std::string status = "/proc/self/status";
  std::string uid_map = "/proc/self/uid_map";
  std::string pid_namespace = "/proc/self/ns/pid";
};
BpfMachine read_bpf_machine(const BpfMachinePaths& paths = {});

struct Obstacle {
  std::string reason;  // one clause: "the kernel has no type information (/sys/kernel/btf/vmlinux)"
  std::string mend;    // what to do; empty: nothing can be done here
  std::string text() const { return mend.empty() ? reason : reason + "; " + mend; }
};

// Nothing: BPF can be used, as far as can be told without loading a program.
std::optional<Obstacle> find_bpf_obstacle(const BpfMachine& machine);

// Why the kernel may have refused to create a map or to load a program (EPERM with nothing in the verifier's log).
Obstacle explain_bpf_refusal(int error_number, const BpfMachine& machine);

}  // namespace cprof::collect
