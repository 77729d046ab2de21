// The processes and threads of a Chrome trace, by its pids and tids, which may be any text. Used by the Chrome trace
// reader; one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/number_map.h"
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
  profile::ProfileBuilder& builder_;
  NumberMap<uint64_t, profile::ProcessId> processes_;                      // by TaskKey
  NumberMap<std::pair<uint64_t, uint64_t>, profile::ThreadId> threads_;  // by both TaskKeys
  NumberMap<uint64_t, profile::ThreadId> by_tid_;                        // the first that has this tid
  TaskKey last_pid_, last_tid_;
  profile::ThreadId last_;  // of those two
};

}  // namespace cprof::format::chrome
