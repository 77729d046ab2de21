#include "format/chrome/tasks.h"
#include "base/number_map.h"

#include <algorithm>
#include <vector>

namespace cprof::format::chrome {

using profile::ProcessId;
using profile::Profile;
using profile::ThreadId;

ProcessId Tasks::process(TaskKey pid) {
  auto [it, is_new] = processes_.try_emplace(pid.value);
  if (is_new) it->second = builder_.add_process(pid.is_text() ? 0 : pid.number(), {});
  return it->second;
}

ThreadId Tasks::thread(TaskKey pid, TaskKey tid) {
  if (last_.valid() && pid == last_pid_ && tid == last_tid_) return last_;
  auto [it, is_new] = threads_.try_emplace({pid.value, tid.value});
  if (is_new) {
    it->second = builder_.add_thread(process(pid), tid.is_text() ? 0 : tid.number(), {});
    by_tid_.try_emplace(tid.value, it->second);
  }
  last_pid_ = pid;
  last_tid_ = tid;
  return last_ = it->second;
}

ProcessId Tasks::process(const TraceEvent& event) {
  return event.process ? process(*event.process) : builder_.profile().threads[thread(event).index()].process;
}

ThreadId Tasks::thread(const TraceEvent& event) {
  if (event.process) return thread(*event.process, event.thread.value_or(*event.process));
  if (!event.thread) return thread(TaskKey{}, TaskKey{});
  const auto known = by_tid_.find(event.thread->value);
  return known == by_tid_.end() ? thread(TaskKey{}, *event.thread) : known->second;
}

void Tasks::name_process(ProcessId id, std::string_view name) {
  builder_.profile().processes[id.index()].name = builder_.intern(name);
}

void Tasks::name_thread(ThreadId id, std::string_view name) {
  builder_.profile().threads[id.index()].name = builder_.intern(name);
}

void Tasks::give_numbers() {
  Profile& profile = builder_.profile();
  int32_t last_number = 0;
  for (const auto& [key, id] : processes_)
    if (!TaskKey{key}.is_text()) last_number = std::max(last_number, TaskKey{key}.number());
  for (const auto& [keys, id] : threads_)
    if (!TaskKey{keys.second}.is_text()) last_number = std::max(last_number, TaskKey{keys.second}.number());
  // In the order in which the trace names them, so that equal files give equal profiles.
  std::vector<TaskKey> pid_of(profile.processes.size()), tid_of(profile.threads.size());
  for (const auto& [key, id] : processes_) pid_of[id.index()] = {key};
  for (const auto& [keys, id] : threads_) tid_of[id.index()] = {keys.second};
  NumberMap<uint64_t, int32_t> numbers;  // of texts: a tid that equals its pid is the main thread
  auto number_of = [&](TaskKey key) {
    auto [it, is_new] = numbers.try_emplace(key.value, last_number);
    if (is_new && last_number < INT32_MAX) it->second = ++last_number;
    return it->second;
  };
  for (size_t i = 0; i < pid_of.size(); ++i) {
    if (!pid_of[i].is_text()) continue;
    profile.processes[i].pid = number_of(pid_of[i]);
    if (profile.processes[i].name == profile::kNoText) profile.processes[i].name = pid_of[i].text();
  }
  for (size_t i = 0; i < tid_of.size(); ++i) {
    if (!tid_of[i].is_text()) continue;
    profile.threads[i].tid = number_of(tid_of[i]);
    if (profile.threads[i].name == profile::kNoText) profile.threads[i].name = tid_of[i].text();
  }
}

}  // namespace cprof::format::chrome
