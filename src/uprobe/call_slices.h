// Calls as slices of their threads: the profile that every output format is written from. Used by the verb, on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "collect/bpf/uprobe_abi.h"
#include "profile/builder.h"
#include "profile/transfer.h"
#include "uprobe/calibration.h"
#include "uprobe/call_stacks.h"
#include "uprobe/functions.h"

namespace cprof::uprobe {

class CallSlices {
 public:
  static constexpr size_t kMostCalls = 20'000'000;  // some 1.5 GB; more are counted as lost

  // command: what was asked for, as a person would say it.
  explicit CallSlices(std::string command);

  void add(const uprobe_call& call);
  size_t size() const { return calls_.size(); }
  // Gives the calls the stacks that they were made from; before take(), which stacks must outlive. What has none is told in
  // the losses. Gives the stacks by function, the most frequent first.
  std::map<uint32_t, std::vector<CallStack>> join(const CallStacks& stacks, Diagnostics& losses);
  // Slices without the part of the probes that can be told from the call's own time: what stands before and behind it. The probes
  // of calls inside it stay, as those have their place in it; labels tell the latency without them, and the stack. Formats that
  // know no slices get stacks weighted by time: those that were joined, else the calls within each other.
  profile::Profile take(std::span<const ProbedFunction> functions, const Calibration& costs, const Diagnostics& losses);

 private:
  struct Call {
    uint64_t start_ns, end_ns, latency_ns;
    uint32_t thread, function;
    profile::CallSiteId callers;  // of the joined stacks; invalid: not known
    uint8_t end;
  };
  static void note_without_stack(const Call& call, Diagnostics& losses);
  profile::CallSiteId callers_of(const Call& call);
  uint32_t thread_of(const uprobe_call& call);
  void add_slice(const Call& call, std::span<const ProbedFunction> functions, const Calibration& costs);
  StringId stack_text(profile::CallSiteId callers);
  profile::LabelSetId labels_of(const Call& call, uint64_t shown_ns);

  profile::ProfileBuilder builder_;
  std::vector<Call> calls_;
  const CallStacks* stacks_ = nullptr;
  std::optional<profile::SharedPlaces> places_;  // of what is taken over from them
  std::optional<profile::Transfer> transfer_;
  std::unordered_map<profile::CallSiteId, StringId> stack_texts_;
  uint64_t too_many_ = 0;
  std::map<uint32_t, profile::ProcessId> processes_;
  std::map<std::pair<uint32_t, uint32_t>, profile::ThreadId> threads_;  // by pid and tid
};

}  // namespace cprof::uprobe
