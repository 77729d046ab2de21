// What `cprof ctl` and a process with libcprof inside have in common: a sealed memfd of that process, found by its name among its
// descriptors. Who asks holds a flock on it, so that there is one at a time; either side takes what the other wrote for hostile.
#pragma once

#include <cstdint>
#include <string_view>

namespace cprof {

inline constexpr char kControlName[] = "cprof-control";  // a link of /proc/PID/fd: "/memfd:cprof-control (deleted)"

// What a dump can be asked for: the formats that libcprof writes itself.
inline constexpr std::string_view kControlEndings[] = {".folded", ".collapsed", ".pb.gz", ".pb", ".pprof", ".pftrace",
                                                       ".perfetto-trace", ".trace.json"};

// kFree drops the bytes of the dump before.
enum class ControlVerb : uint32_t { kStart = 1, kStop, kStatus, kDump, kFree };

struct ControlStatus {
  uint32_t is_running, event_kind;  // event_kind: as in cprof_status
  uint32_t frequency_hz, threads;
  uint64_t samples, samples_lost, scopes_written, scopes_lost;
  uint64_t cpu_ns;
  double delivered_hz;
};

struct ControlBlock {
  static constexpr uint64_t kMagic = 0x6c74632d666f7270;
  static constexpr uint32_t kVersion = 1;
  static constexpr uint32_t kTextBytes = 2048;

  uint64_t magic;
  uint32_t version;
  uint32_t asked;     // futex: one more for each request, once the rest is written
  uint32_t answered;  // futex: becomes asked when it is done
  ControlVerb verb;
  int32_t failed;     // then text says why
  int32_t data_fd;    // kDump: the process' descriptor of a memfd with the bytes
  ControlStatus status;
  char text[kTextBytes];  // kStart: options; kDump: a name whose ending chooses the format
};

}  // namespace cprof
