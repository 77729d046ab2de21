// Whether the BPF backend may be used on a kernel, before anything is loaded. Used by BpfCollector and the doctor.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cprof::collect {

// What the running kernel says of itself; tests make up others.
struct KernelIdentity {
  std::string machine, release, version;  // of uname
  bool has_btf = false;                   // /sys/kernel/btf/vmlinux
  std::string lockdown;                   // /sys/kernel/security/lockdown
  bool has_own_pids = false;              // we are in a pid namespace: what BPF calls a process, we call by another number
};
KernelIdentity running_kernel();

// An error that says why not, in one plain line.
Result<void> check_bpf_support(const KernelIdentity& kernel);

}  // namespace cprof::collect
