// What a session is asked to do: the text of cprof_start() and of the environment's CPROF, "key=value,key=value".
// docs/libcprof.md lists the keys. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::embed {

enum class Mode : uint8_t { kCpu, kWall };
enum class Overflow : uint8_t { kDrop, kOverwrite };
enum class Children : uint8_t { kYes, kNo, kExec };

// trigger=NAME>TIME: a scope of that name that lasts longer is a spike.
struct ScopeLimit {
  std::string scope;
  uint64_t longest_ns = 0;
};

struct Options {
  std::vector<std::string> outputs;       // patterns with %p, %e, %n
  uint32_t frequency_hz = 999;            // 0: no samples
  Mode mode = Mode::kCpu;
  Overflow overflow = Overflow::kDrop;
  Children children = Children::kYes;
  bool with_kernel = false;               // samples while in the kernel too, at the price of EINTR
  bool timers_only = false;               // events=timer: as if perf events were refused
  bool quiet = false;
  uint64_t ring_records = 64 * 1024;      // scopes, marks and counter values of one thread
  uint64_t buffer_bytes = 256ull << 20;   // of everything kept until it is written
  uint64_t window_on_ns = 0, window_period_ns = 0;   // 0: always on
  uint64_t keep_ns = 0;                   // flight recorder: only so much of the past is kept; 0: all of it
  std::vector<ScopeLimit> scope_limits;   // what exceeds one makes a report of the last keep_ns
  int trigger_signal = 0;                 // starts a session of trigger_seconds
  double trigger_seconds = 0;
  bool waits = false;                     // start=no: for cprof ctl or cprof_start()
};

Result<Options> parse_options(std::string_view text);

}  // namespace cprof::embed
