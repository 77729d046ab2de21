// Calls as slices of their threads: the profile that every output format is written from. Used by the verb, on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "collect/bpf/uprobe_abi.h"
#include "profile/builder.h"
#include "uprobe/calibration.h"
#include "uprobe/functions.h"

namespace cprof::uprobe {

class CallSlices {
 public:
  static constexpr size_t kMostCalls = 20'000'000;  // some 1.5 GB; more are counted as lost

  // command: what was asked for, as a person would say it.
  explicit CallSlices(std::string command);

  void add(const uprobe_call& call);
  size_t size() const { return calls_.size(); }
  // Slices without the part of the probes that can be told from the call's own time: what stands before and behind it. The probes
  // of calls inside it stay, as those have their place in it; labels tell the latency without them.
  profile::Profile take(std::span<const ProbedFunction> functions, const Calibration& costs, const Diagnostics& losses);

 private:
  struct Call {
    uint64_t start_ns, end_ns, latency_ns;
    uint32_t thread, function;
    uint32_t end;
  };
  uint32_t thread_of(const uprobe_call& call);
  void add_slice(const Call& call, std::span<const ProbedFunction> functions, const Calibration& costs);
  profile::LabelSetId labels_of(const Call& call, uint64_t shown_ns);

  profile::ProfileBuilder builder_;
  std::vector<Call> calls_;
  uint64_t too_many_ = 0;
  std::map<uint32_t, profile::ProcessId> processes_;
  std::map<std::pair<uint32_t, uint32_t>, profile::ThreadId> threads_;  // by pid and tid
};

}  // namespace cprof::uprobe
