#include "uprobe/call_stacks.h"

#include <algorithm>
#include <functional>

#include "profile/frame_name.h"

namespace cprof::uprobe {

std::optional<CallStacks::Found> CallStacks::find(int32_t tid, uint64_t end_ns) const {
  auto [sample, end] = std::ranges::equal_range(walked_.samples, end_ns, {}, &profile::Sample::time_ns);
  for (; sample != end; ++sample) {
    if (walked_.threads[sample->thread.index()].tid != tid) continue;
    const profile::CallSiteId leaf = sample->site;
    return Found{leaf.valid() ? walked_.sites[leaf.index()].parent : profile::CallSiteId(), sample->end};
  }
  return std::nullopt;
}

std::vector<std::string> CallStacks::frames(profile::CallSiteId callers) const {
  std::vector<std::string> frames;
  for (profile::CallSiteId at = callers; at.valid(); at = walked_.sites[at.index()].parent) {
    const profile::LocationId place = walked_.sites[at.index()].location;
    const auto lines = walked_.lines_of(place);
    if (lines.empty()) frames.push_back(profile::stand_in_name(walked_, walked_.locations[place.index()]));
    for (const profile::Line& line : lines) frames.emplace_back(walked_.text(walked_.functions[line.function.index()].name));
  }
  return frames;
}

void CallStackSums::add(uint32_t function, const CallStacks::Found& stack, uint64_t latency_ns) {
  Sum& sum = sums_[{function, stack.callers, stack.end}];
  sum.calls++;
  sum.total_ns += latency_ns;
}

std::map<uint32_t, std::vector<CallStack>> CallStackSums::by_name(const CallStacks& stacks) const {
  std::map<uint32_t, std::map<std::pair<std::vector<std::string>, profile::StackEnd>, Sum>> joined;
  for (const auto& [key, sum] : sums_) {
    const auto& [function, callers, end] = key;
    Sum& all = joined[function][{stacks.frames(callers), end}];
    all.calls += sum.calls;
    all.total_ns += sum.total_ns;
  }
  std::map<uint32_t, std::vector<CallStack>> result;
  for (const auto& [function, by_stack] : joined) {
    std::vector<CallStack>& list = result[function];
    for (const auto& [stack, sum] : by_stack) list.push_back({stack.first, sum.calls, sum.total_ns, stack.second});
    std::ranges::stable_sort(list, std::ranges::greater(), [](const CallStack& s) { return std::pair(s.calls, s.total_ns); });
  }
  return result;
}

}  // namespace cprof::uprobe
