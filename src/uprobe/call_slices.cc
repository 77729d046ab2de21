#include "uprobe/call_slices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "profile/this_machine.h"
#include "timeline/slice_lanes.h"

namespace cprof::uprobe {

CallSlices::CallSlices(std::string command) {
  profile::RunInfo& run = builder_.profile().run;
  profile::describe_this_machine(run);
  run.command = std::move(command);
  run.start_ns = monotonic_ns();
}

uint32_t CallSlices::thread_of(const uprobe_call& call) {
  const std::string_view comm(call.comm, strnlen(call.comm, sizeof call.comm));
  const auto [process, is_new_process] = processes_.try_emplace(call.pid);
  if (is_new_process) process->second = builder_.add_process(static_cast<int32_t>(call.pid), comm, call.start_ns);
  const auto [thread, is_new] = threads_.try_emplace({call.pid, call.tid});
  if (is_new) thread->second = builder_.add_thread(process->second, static_cast<int32_t>(call.tid), comm, call.start_ns);
  profile::Profile& profile = builder_.profile();
  const StringId name = builder_.intern(comm);
  profile.threads[thread->second.index()].name = name;
  if (call.pid == call.tid) profile.processes[process->second.index()].name = name;
  if (call.end == UPROBE_THREAD_ENDED) profile.threads[thread->second.index()].end_ns = call.end_ns;
  return thread->second.value;
}

void CallSlices::add(const uprobe_call& call) {
  if (calls_.size() >= kMostCalls) {
    too_many_++;
    return;
  }
  calls_.push_back({call.start_ns, std::max(call.start_ns, call.end_ns), call.latency_ns, thread_of(call), call.function, {},
                    static_cast<uint8_t>(call.end)});
}

void CallSlices::note_without_stack(const Call& call, Diagnostics& losses) {
  if (call.end == UPROBE_UNWOUND)
    losses.add("stacks_of_unwound_calls", Severity::kNotice, "told calls without a stack: it was gone when their end was noticed");
  else if (call.end != UPROBE_FINISHED)
    losses.add("stacks_of_open_calls", Severity::kInfo, "told calls without a stack, as they had not ended");
  else
    losses.add("stacks_missing", Severity::kDataLoss, "told calls whose stack could not be taken or got lost on its way");
}

std::map<uint32_t, std::vector<CallStack>> CallSlices::join(const CallStacks& stacks, Diagnostics& losses) {
  stacks_ = &stacks;
  transfer_.emplace(stacks.profile(), builder_, places_.emplace());
  CallStackSums sums;
  for (Call& call : calls_) {
    const auto found = stacks.find(builder_.profile().threads[call.thread].tid, call.end_ns);
    if (!found) {
      note_without_stack(call, losses);
      continue;
    }
    call.callers = found->callers;
    sums.add(call.function, *found, call.latency_ns);
    if (found->end != profile::StackEnd::kComplete)
      losses.add(fmt::format("call_stacks_{}", name_of(found->end)), Severity::kNotice,
                 fmt::format("stacks of told calls that end early ({})", name_of(found->end)));
  }
  return sums.by_name(stacks);
}

profile::CallSiteId CallSlices::callers_of(const Call& call) {
  return call.callers.valid() ? transfer_->site(call.callers) : profile::CallSiteId();
}

// As folded stacks have it, the root first.
StringId CallSlices::stack_text(profile::CallSiteId callers) {
  const auto [known, is_new] = stack_texts_.try_emplace(callers);
  if (!is_new) return known->second;
  std::vector<std::string> frames = stacks_->frames(callers);
  std::ranges::reverse(frames);
  return known->second = builder_.intern(fmt::format("{}", fmt::join(frames, ";")));
}

profile::LabelSetId CallSlices::labels_of(const Call& call, uint64_t shown_ns) {
  std::vector<profile::Label> labels;
  if (call.end == UPROBE_UNWOUND) labels.push_back({.key = builder_.intern("closed_by"), .text = builder_.intern("unwinding")});
  if (call.end == UPROBE_THREAD_ENDED) labels.push_back({.key = builder_.intern("closed_by"), .text = builder_.intern("end of thread")});
  if (shown_ns != call.latency_ns)
    labels.push_back({.key = builder_.intern("latency"),
                      .number = static_cast<int64_t>(call.latency_ns),
                      .unit = builder_.intern("nanoseconds"),
                      .is_number = true});
  if (call.callers.valid()) labels.push_back({.key = builder_.intern("stack"), .text = stack_text(call.callers)});
  return builder_.recent_label_set(labels);
}

void CallSlices::add_slice(const Call& call, std::span<const ProbedFunction> functions, const Calibration& costs) {
  const ProbedFunction& function = functions[call.function];
  const bool is_stepped = !function.entries.empty() && function.entries.front().is_stepped;
  const uint64_t raw_ns = call.end_ns - call.start_ns, cost_ns = std::min(raw_ns, costs.self_ns[is_stepped]);
  profile::Profile& profile = builder_.profile();
  profile.slices.push_back({.thread = profile::ThreadId(call.thread),
                            .name = builder_.intern(function.name),
                            .category = builder_.intern("function"),
                            .start_ns = call.start_ns + cost_ns / 2,
                            .duration_ns = raw_ns - cost_ns,
                            .labels = labels_of(call, raw_ns - cost_ns),
                            .is_open = call.end == UPROBE_OPEN});
}

profile::Profile CallSlices::take(std::span<const ProbedFunction> functions, const Calibration& costs, const Diagnostics& losses) {
  profile::Profile& profile = builder_.profile();
  profile.run.end_ns = monotonic_ns();
  // Outer calls end later: where two begin at one time the longer one is outside.
  std::ranges::stable_sort(calls_, [](const Call& a, const Call& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  profile.slices.reserve(calls_.size());
  std::vector<profile::CallSiteId> callers;
  for (const Call& call : calls_) {
    add_slice(call, functions, costs);
    if (stacks_) callers.push_back(callers_of(call));
  }
  calls_ = {};
  profile.diagnostics.merge(losses);
  if (too_many_)
    profile.diagnostics.add("calls_too_many", Severity::kDataLoss,
                            "calls that are counted but are no slices, as there were too many; take --min-duration", too_many_);
  timeline::nest_slices(profile, callers);
  timeline::add_slice_stacks(builder_, callers);
  return builder_.take();
}

}  // namespace cprof::uprobe
