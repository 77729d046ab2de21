// Runs a command under perf_event_open and keeps what an unwinder needs of each sample: user registers, stack bytes and
// the executable mappings at that moment. Deliberately not the product's collector: the oracle must not share its bugs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cprof::oracle {

// One executable mapping, as the kernel reported it.
struct Mapping {
  uint64_t start = 0, end = 0, file_offset = 0;
  std::string path;
  bool is_file() const { return !path.empty() && path[0] == '/' && !path.starts_with("//") && !path.starts_with("/memfd:"); }
  bool is_vdso() const { return path == "[vdso]"; }
};

// Executable mappings by start. Shared by all samples between two changes, so identity of the pointer is identity of
// the address space.
using AddressSpace = std::map<uint64_t, Mapping>;

const Mapping* find_mapping(const AddressSpace& space, uint64_t pc);

struct Snapshot {
  int32_t pid = 0, tid = 0;
  uint64_t registers[17] = {};  // DWARF order: rax rdx rcx rbx rsi rdi rbp rsp r8-r15 rip
  std::vector<std::byte> stack;
  std::shared_ptr<const AddressSpace> space;

  uint64_t sp() const { return registers[7]; }
  uint64_t pc() const { return registers[16]; }
};

struct Capture {
  std::vector<Snapshot> snapshots;
  uint64_t lost = 0;
  uint64_t without_user = 0;  // kernel threads, 32-bit code, an exec in progress
};

struct CaptureOptions {
  std::vector<std::string> command;
  size_t max_snapshots = 1000;
  unsigned frequency_hz = 1999;
  uint32_t stack_bytes = 32768;
  double max_seconds = 4;
};

// Empty when this machine lets us; else one line that says why not.
std::string why_capture_is_impossible();

// The command and its children are ended when enough is captured. On failure: error is set.
Capture capture(const CaptureOptions& options, std::string& error);

}  // namespace cprof::oracle
