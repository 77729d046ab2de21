// The processes and threads of a Chrome trace, by its pids and tids, which may be any text. Used by the Chrome trace
// reader; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "format/chrome/trace_event.h"

namespace cprof::format::chrome {

class Tasks {
 public:
  explicit Tasks(profile::ProfileBuilder& builder) : builder_(builder) {}

  profile::ProcessId process(TaskKey pid);
  profile::ThreadId thread(TaskKey pid, TaskKey tid);
  profile::ProcessId process(const TraceEvent& event);
  // Of an event: without a pid the thread that has that tid, without a tid the main thread.
  profile::ThreadId thread(const TraceEvent& event);

  void name_process(profile::ProcessId id, std::string_view name);
  void name_thread(profile::ThreadId id, std::string_view name);

  // Ids that are text get numbers that no other has, and the text as their name when nothing else named them. Last.
  void give_numbers();

 private:
  struct PairHash {
    size_t operator()(const std::pair<uint64_t, uint64_t>& key) const {
      return profile::hash_join(profile::hash_join(0x51ed270b, key.first), key.second);
    }
  };
  profile::ProfileBuilder& builder_;
  std::unordered_map<uint64_t, profile::ProcessId> processes_;                           // by TaskKey
  std::unordered_map<std::pair<uint64_t, uint64_t>, profile::ThreadId, PairHash> threads_;  // by both TaskKeys
  std::unordered_map<uint64_t, profile::ThreadId> by_tid_;  // the first that has this tid
  TaskKey last_pid_, last_tid_;
  profile::ThreadId last_;  // of those two
};

}  // namespace cprof::format::chrome
