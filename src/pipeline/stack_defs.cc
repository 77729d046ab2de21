#include "pipeline/stack_defs.h"

#include <algorithm>

namespace cprof::pipeline {
namespace {

constexpr uint64_t kKeptAfterExitNs = 10'000'000'000;

}  // namespace

void StackDefs::define(const space::Process& process, uint64_t id, const KnownStack& stack, uint64_t time_ns) {
  auto& stacks = by_process_[process.serial];
  if (auto known = stacks.find(id); known != stacks.end()) {
    known->second = {stack, time_ns};
    return;
  }
  if (size_ >= most_) {
    diagnostics_.add("stack_definitions_dropped", Severity::kDataLoss,
                     "different stacks beyond the number that is kept at a time; their samples have no stack");
    return;
  }
  stacks.emplace(id, Defined{stack, time_ns});
  size_++;
}

KnownStack StackDefs::find(const space::Process& process, uint64_t id) {
  auto stacks = by_process_.find(process.serial);
  if (stacks != by_process_.end())
    if (auto known = stacks->second.find(id); known != stacks->second.end()) return known->second.stack;
  diagnostics_.add("stacks_undefined", Severity::kDataLoss, "samples whose stack was lost before it was described");
  return {};
}

std::optional<uint32_t> StackDefs::other_owner(const space::Process& process, uint64_t id) const {
  auto own = by_process_.find(process.serial);
  if (own != by_process_.end() && own->second.contains(id)) return std::nullopt;
  auto other = std::ranges::find_if(ended_, [&](const Ended& ended) {
    auto stacks = by_process_.find(ended.serial);
    return stacks != by_process_.end() && stacks->second.contains(id);
  });
  return other == ended_.end() ? std::nullopt : std::optional(other->serial);
}

void StackDefs::forget_defined_before(uint64_t time_ns) {
  for (auto& [serial, stacks] : by_process_)
    size_ -= std::erase_if(stacks, [&](const auto& entry) { return entry.second.time_ns < time_ns; });
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
