// What already runs: lists of processes and threads from /proc, and their description as events, as if the kernel had
// reported it when the recording began. A process that ends meanwhile is not an error.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "event/event.h"

namespace cprof::collect {

// Every process whose main thread has this name, in ascending order; ourselves left out.
Result<std::vector<int32_t>> find_by_name(std::string_view name);

// The threads of these processes; "no such process N" for one that is not there.
Result<std::vector<event::Task>> threads_of(const std::vector<int32_t>& pids);
// Each tid with its process; "no such thread N".
Result<std::vector<event::Task>> tasks_of(const std::vector<int32_t>& tids);

// A Comm for each thread, then a Mmap for each executable mapping, all at time_ns.
Result<void> describe_process(int32_t pid, uint64_t time_ns, event::EventSink& sink);
Result<void> describe_all_processes(uint64_t time_ns, event::EventSink& sink);

}  // namespace cprof::collect
