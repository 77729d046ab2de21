// One run of probes: from chosen functions to their sums. Puts the numbers of functions and places together, attaches, reads.
// Used by the verb, on one thread; probes go when it goes, whatever the target does.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "base/result.h"
#include "collect/bpf/uprobe_object.h"
#include "uprobe/calibration.h"
#include "uprobe/functions.h"
#include "uprobe/latency.h"
#include "uprobe/target_files.h"

namespace cprof::uprobe {

// At most one kind of target; none: every process that has the files.
struct TraceTarget {
  std::vector<int32_t> pids, tids;
  std::string cgroup;       // a directory of the cgroup v2 hierarchy
  bool children = false;    // those that the targets start, too

  bool is_everything() const { return pids.empty() && tids.empty() && cgroup.empty(); }
  std::string cgroup_path() const { return cgroup.empty() || cgroup.starts_with('/') ? cgroup : "/sys/fs/cgroup/" + cgroup; }
};

struct TraceOptions {
  TraceTarget target;
  bool has_latency = true, has_callers = false, has_calls = false;
  bool has_stacks = false;  // of the calls told
  uint64_t least_ns = 0;    // calls told last at least so long
  uint32_t rate_limit = 0;  // calls told a second; 0: no limit
  Attach attach = Attach::kAuto;
  bool by_return_address = false;
};

class Tracer {
 public:
  // The functions' sites get their numbers here. files and functions must outlive this.
  static Result<std::unique_ptr<Tracer>> make(const TraceOptions& options, std::vector<ProbedFunction>& functions,
                                              const std::vector<TargetFile>& files);

  using OnProgress = std::function<void(size_t done, size_t all)>;
  Result<void> attach(const OnProgress& on_progress);
  void detach() { object_->links().detach(); }

  FunctionSums sums(uint32_t function, bool with_histogram) const;
  collect::UprobeObject& object() { return *object_; }
  const Calibration& calibration() const { return calibration_; }
  size_t probes() const { return probes_; }
  Diagnostics diagnostics() const;

 private:
  struct Plan {  // of one file
    std::vector<collect::ProbePlace> entries, exits, returns;
  };
  Tracer(const TraceOptions& options, std::vector<ProbedFunction>& functions, const std::vector<TargetFile>& files)
      : options_(options), functions_(functions), files_(files) {}
  Result<void> load();
  Result<void> name_targets();
  Result<void> number_sites();
  Result<void> add_place(const ProbedFunction& function, const uprobe_site& site, std::vector<collect::ProbePlace>& to);
  std::vector<int32_t> pids_of(const TargetFile& file) const;
  void note_refused(std::span<const uint32_t> sites);

  TraceOptions options_;
  std::vector<ProbedFunction>& functions_;
  const std::vector<TargetFile>& files_;
  Calibration calibration_;
  std::unique_ptr<collect::UprobeObject> object_;
  std::vector<Plan> plans_;         // by file
  std::vector<uprobe_site> sites_;  // by number
  size_t probes_ = 0;
  Fd cgroup_;
  Diagnostics refused_;
};

}  // namespace cprof::uprobe
