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
  std::string container;              // id or name
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
  bool off_cpu = false;
  std::string raw_path;               // --save-raw
  uint64_t max_bytes = 0;             // of what is recorded; 0: no limit. Reached, the recording stops or, in parts, goes on
  size_t rotate = 0;                  // keep so many of the newest parts; 0: the recording is one, dumps are all kept
  double window_s = 0;                // not 0: keep the last seconds only; SIGUSR2 writes them and the recording goes on
  pipeline::Options pipeline;
  std::vector<Output> outputs;
  format::WriteOptions write;
  std::function<void(profile::Profile&)> before_writing;  // of each profile that goes to files, named; may be empty
};

struct Recorded {
  profile::Profile profile;
  int command_status = 0;             // as a shell would give it
  std::optional<Error> command_error;     // the command could not run: there is no profile
  std::optional<Error> collection_error;  // what came before it is in the profile all the same
  std::vector<Output> outputs;            // where the profile goes: in a recording in parts, its last one
  std::vector<std::string> parts;         // files that were written during the recording and are still there
  std::vector<std::string> outdated;      // those of them that are too many once the profile is written
};

// progress: called about twice a second with what has come so far.
struct Progress {
  uint64_t samples = 0;
  double seconds = 0;
};
// Hears for each output what its format could not hold.
using LossListener = std::function<void(const std::string& path, const Diagnostics& losses)>;
struct Listener {
  std::function<void(const Progress&)> progress;
  std::function<void(const std::string& path)> part_written;
  LossListener part_losses;  // called in the copy of the process that writes the part
};
Result<Recorded> record(const RecordOptions& options, const Listener& listener);

// Whether an output, or a way to end or to keep the recording, needs the time of each sample. Where none does, a backend
// may count samples instead.
bool needs_times(const RecordOptions& options);

// Before a long recording: whether its outputs can be written at all.
Result<void> check_outputs(const std::vector<Output>& outputs);
Result<void> write_outputs(const profile::Profile& profile, const std::vector<Output>& outputs,
                           const format::WriteOptions& options, const LossListener& on_losses);
// The rest of a recording; then its parts that are too many go.
Result<void> write_recorded(const Recorded& recorded, const format::WriteOptions& options, const LossListener& on_losses);

}  // namespace cprof::session
