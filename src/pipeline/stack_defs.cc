#include "pipeline/stack_defs.h"

namespace cprof::pipeline {
namespace {

constexpr uint64_t kKeptAfterExitNs = 10'000'000'000;

}  // namespace

void StackDefs::define(const space::Process& process, uint64_t id, const KnownStack& stack) {
  auto& stacks = by_process_[process.serial];
  if (auto known = stacks.find(id); known != stacks.end()) {
    known->second = stack;
    return;
  }
  if (size_ >= most_) {
    diagnostics_.add("stack_definitions_dropped", Severity::kDataLoss,
                     "different stacks beyond the number that is kept at a time; their samples have no stack");
    return;
  }
  stacks.emplace(id, stack);
  size_++;
}

KnownStack StackDefs::find(const space::Process& process, uint64_t id) {
  auto stacks = by_process_.find(process.serial);
  if (stacks != by_process_.end())
    if (auto known = stacks->second.find(id); known != stacks->second.end()) return known->second;
  diagnostics_.add("stacks_undefined", Severity::kDataLoss, "samples whose stack was lost before it was described");
  return {};
}

void StackDefs::forget_ended(uint64_t now_ns) {
  while (!ended_.empty() && ended_.front().time_ns + kKeptAfterExitNs <= now_ns) {
    auto stacks = by_process_.find(ended_.front().serial);
    ended_.pop_front();
    if (stacks == by_process_.end()) continue;
    size_ -= stacks->second.size();
    by_process_.erase(stacks);
  }
}

}  // namespace cprof::pipeline
