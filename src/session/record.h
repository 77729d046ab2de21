// One recording from start to files: a collector feeds the pipeline until the target ends, the time is over or a signal
// asks to stop; then the profile is named and every output is written. Used by the verbs that sample.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/format.h"
#include "pipeline/pipeline.h"
#include "profile/profile.h"

namespace cprof::session {

struct Target {
  std::vector<std::string> command;   // exactly one of these is given
  std::vector<int32_t> pids;
  std::vector<int32_t> tids;
  std::string name;                   // every process of this name
  bool whole_machine = false;
  std::string cgroup;                 // path below the cgroup file system, or absolute
};

struct Output {
  std::string path;
  const format::FormatInfo* format = nullptr;
};

enum class Backend : uint8_t { kAuto, kBpf, kPerf };  // kAuto: bpf where this machine can, else perf

struct RecordOptions {
  Target target;
  std::vector<std::string> events;    // empty: cycles where the machine has them, else cpu-clock
  Backend backend = Backend::kAuto;
  uint64_t freq_hz = 0;               // 0: 999 for a command, 199 for what runs already
  bool max_freq = false;
  uint64_t period = 0;                // overrides freq_hz
  std::optional<double> duration_s;
  double delay_s = 0;
  std::string cpus;                   // "0-3,5"; empty: all
  bool frame_pointers = false;
  uint32_t stack_bytes = 0;           // 0: 16 KiB, 64 KiB when that cuts too many stacks
  bool kernel = true;
  bool inherit = true;
  std::string raw_path;               // --save-raw
  pipeline::Options pipeline;
  std::vector<Output> outputs;
  format::WriteOptions write;
};

struct Recorded {
  profile::Profile profile;
  int command_status = 0;             // as a shell would give it
  std::optional<Error> command_error;     // the command could not run: there is no profile
  std::optional<Error> collection_error;  // what came before it is in the profile all the same
};

// progress: called about twice a second with what has come so far.
struct Progress {
  uint64_t samples = 0;
  double seconds = 0;
};
Result<Recorded> record(const RecordOptions& options, const std::function<void(const Progress&)>& progress);

// Before a long recording: whether its outputs can be written at all.
Result<void> check_outputs(const std::vector<Output>& outputs);
Result<void> write_outputs(const profile::Profile& profile, const std::vector<Output>& outputs,
                           const format::WriteOptions& options);

}  // namespace cprof::session
