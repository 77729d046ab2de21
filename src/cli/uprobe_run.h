// One run of uprobe: from patterns to probed functions, then pictures and calls until the target ends or the user has seen
// enough, then sums. Used by the verb, on one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "cli/uprobe_screens.h"
#include "session/call_stacks.h"
#include "uprobe/call_slices.h"
#include "uprobe/call_stacks.h"
#include "uprobe/caller_names.h"
#include "uprobe/tracer.h"

namespace cprof::cli {

struct UprobeOptions {
  std::vector<uprobe::FunctionPattern> patterns;
  uprobe::TraceOptions trace;
  symbolize::DemangleStyle style = symbolize::DemangleStyle::kFull;
  object::FilePlaces places;
  size_t most_functions = 0;
  uint64_t duration_ns = 0;     // 0: no limit
  bool is_command = false;      // the target, which is still to become its program
};

class UprobeRun {
 public:
  explicit UprobeRun(UprobeOptions options) : options_(std::move(options)), files_(options_.places) {}

  uprobe::TargetFiles& files() { return files_; }
  uprobe::TraceTarget& target() { return options_.trace.target; }
  void set_command(int32_t pid);

  // Finds the functions and probes them. What matches nothing is an error.
  Result<void> start(const uprobe::Tracer::OnProgress& on_progress);

  using OnCall = std::function<void(const uprobe_call&)>;
  struct Watch {
    UprobeScreen& screen;
    std::function<bool()> has_ended;
    OnCall on_call;
  };
  Result<void> watch(const Watch& watch);
  // Takes the probes away; calls that go on are told.
  Result<void> stop(const OnCall& on_call);
  // Once the run is stopped: names take the kernel's objects' place.
  void name_callers();
  // The stacks of the calls that were told; null: not asked for.
  const uprobe::CallStacks* stacks() const { return stacks_ ? &*stacks_ : nullptr; }
  void add_losses(const Diagnostics& losses) { diagnostics_.merge(losses); }

  const std::vector<uprobe::ProbedFunction>& functions() const { return finder_->functions(); }
  std::string module_of(uint32_t function) const { return files_.all()[functions()[function].file].module(); }
  uprobe::FunctionSums sums(uint32_t function) const { return sums_.empty() ? tracer_->sums(function, true) : sums_[function]; }
  const std::vector<uprobe::Caller>& callers(uint32_t function) const;
  const uprobe::Calibration& calibration() const { return calibration_; }
  size_t probes() const { return probes_; }
  double seconds() const { return static_cast<double>(end_ns_ - start_ns_) / 1e9; }
  std::vector<UprobeRow> summary_rows() const;
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Result<void> choose_functions();
  Result<void> look_in(std::span<const uprobe::FunctionPattern> patterns, bool with_libraries, std::vector<size_t>& matched);
  Error nothing_matches(const uprobe::FunctionPattern& pattern) const;
  Result<void> start_stacks();
  UprobePicture picture();
  void open_tasks();
  bool is_target_gone() const;

  UprobeOptions options_;
  uprobe::TargetFiles files_;
  std::optional<uprobe::FunctionFinder> finder_;
  std::vector<std::string> modules_;         // by file
  std::vector<std::pair<Fd, int32_t>> tasks_;  // the target's
  std::unique_ptr<uprobe::Tracer> tracer_;
  std::unique_ptr<session::CallStackRecording> recording_;  // of stacks; goes before the tracer
  std::optional<uprobe::CallStacks> stacks_;
  uprobe::Calibration calibration_;
  uprobe::NotedCallers noted_;
  std::map<uint32_t, std::vector<uprobe::Caller>> callers_;
  std::vector<uprobe::FunctionSums> sums_;   // once stopped
  std::vector<uint64_t> calls_before_;       // of the picture before
  uint64_t start_ns_ = 0, end_ns_ = 0, picture_ns_ = 0;
  size_t probes_ = 0;
  Diagnostics diagnostics_;
};

}  // namespace cprof::cli
