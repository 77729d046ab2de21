#include "format/perfdata/stack_chains.h"

namespace cprof::format::perfdata {

void StackChains::define(const event::StackDef& def) {
  size_t size = def.kernel_chain.size() + def.user_chain.size();
  if (words_ + size > max_words_) {
    by_pid_.clear();
    words_ = 0;
  }
  Chains& chains = by_pid_[def.task.pid][def.id];
  words_ += size;
  words_ -= chains.words.size();
  chains.words.assign(def.kernel_chain.begin(), def.kernel_chain.end());
  chains.words.insert(chains.words.end(), def.user_chain.begin(), def.user_chain.end());
  chains.kernel_count = def.kernel_chain.size();
}

void StackChains::forget(int32_t pid) {
  auto process = by_pid_.find(pid);
  if (process == by_pid_.end()) return;
  for (const auto& [id, chains] : process->second) words_ -= chains.words.size();
  by_pid_.erase(process);
}

event::Sample StackChains::with_chains(const event::Sample& sample) const {
  event::Sample result = sample;
  auto process = by_pid_.find(sample.task.pid);
  if (process == by_pid_.end()) return result;
  auto found = process->second.find(sample.stack_id);
  if (found == process->second.end()) return result;
  std::span<const uint64_t> words = found->second.words;
  result.kernel_chain = words.first(found->second.kernel_count);
  result.user_chain = words.subspan(found->second.kernel_count);
  return result;
}

}  // namespace cprof::format::perfdata
