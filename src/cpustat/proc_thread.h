// The files of /proc that tell what a thread does, and lists of threads. Private to the /proc source of cpustat. A thread
// that ends meanwhile is not an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpustat/thread_source.h"
#include "event/event.h"

namespace cprof::cpustat {

struct ProcStat {
  std::string comm;
  char state = '?';
  bool is_kernel = false;
  int32_t parent_pid = 0;
  uint64_t user_ticks = 0, system_ticks = 0, start_ns = 0;
};
std::optional<ProcStat> parse_proc_stat(std::string_view text);
std::optional<ProcStat> read_proc_stat(const std::string& proc, const event::Task& task);

// CPU time, runnable time, switches, migrations. What a kernel without schedstat does not tell is by ticks, or 0.
void read_proc_accounts(const std::string& proc, const event::Task& task, const ProcStat& stat, ThreadSums& into);

// The kernel function it waits in; "" when it runs or that is not told.
std::string read_wait_channel(const std::string& proc, const event::Task& task);

class TaskList {
 public:
  explicit TaskList(const std::string& proc) : proc_(proc) {}
  std::vector<event::Task> all() const;
  std::vector<event::Task> of_processes(const std::vector<int32_t>& pids) const;
  std::vector<event::Task> of_families(const std::vector<int32_t>& pids) const;  // and what descends from them
  std::vector<event::Task> of_threads(const std::vector<int32_t>& tids) const;
  std::vector<event::Task> of_cgroup(const std::string& path) const;

 private:
  const std::string& proc_;
};

}  // namespace cprof::cpustat
