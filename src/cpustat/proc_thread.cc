#include "cpustat/proc_thread.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/file.h"

namespace cprof::cpustat {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr uint64_t kKernelThreadFlag = 0x00200000;  // PF_KTHREAD of the kernel's sched.h

uint64_t tick_ns() {
  static const uint64_t value = kSecondNs / static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return value;
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The number behind "\nname:" and blanks.
uint64_t field_of(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == text.npos) return 0;
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(": \t"), text.size()));
  return number_of(text).value_or(0);
}

std::string path_of(const std::string& proc, const event::Task& task, std::string_view file) {
  return fmt::format("{}/{}/task/{}/{}", proc, task.pid, task.tid, file);
}

std::vector<int32_t> numbers_in(const std::string& directory) {
  std::vector<int32_t> numbers;
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  while (dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (auto number = number_of(name)) numbers.push_back(static_cast<int32_t>(*number));
  }
  return numbers;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return std::nullopt;
  ProcStat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  text.remove_prefix(close + 1);
  // proc_pid_stat(5): 3 is the state, 4 the parent, 9 flags, 14 utime, 15 stime, 22 the start time.
  for (int field = 3; field <= 22; ++field) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    if (field == 3) stat.state = word.empty() ? '?' : word[0];
    const uint64_t value = number_of(word).value_or(0);
    if (field == 4) stat.parent_pid = static_cast<int32_t>(value);
    if (field == 9) stat.is_kernel = value & kKernelThreadFlag;
    if (field == 14) stat.user_ticks = value;
    if (field == 15) stat.system_ticks = value;
    if (field == 22 && word.empty()) return std::nullopt;
    if (field == 22) stat.start_ns = value * tick_ns();
  }
  return stat;
}

std::optional<ProcStat> read_proc_stat(const std::string& proc, const event::Task& task) {
  auto text = read_text_file(path_of(proc, task, "stat"), kMostBytes);
  return text ? parse_proc_stat(*text) : std::nullopt;
}

void read_proc_accounts(const std::string& proc, const event::Task& task, const ProcStat& stat, ThreadSums& into) {
  into.user_ns = stat.user_ticks * tick_ns();
  into.system_ns = stat.system_ticks * tick_ns();
  into.cpu_ns = into.user_ns + into.system_ns;
  unsigned long long cpu = 0, runnable = 0;
  auto schedstat = read_text_file(path_of(proc, task, "schedstat"), kMostBytes);
  if (schedstat && sscanf(schedstat->c_str(), "%llu %llu", &cpu, &runnable) == 2) {
    into.cpu_ns = cpu;
    into.runnable_ns = runnable;
  }
  const std::string status = read_text_file(path_of(proc, task, "status"), kMostBytes).value_or("");
  into.voluntary = field_of(status, "\nvoluntary_ctxt_switches");
  into.involuntary = field_of(status, "\nnonvoluntary_ctxt_switches");
}

std::string read_wait_channel(const std::string& proc, const event::Task& task) {
  std::string name = read_text_file(path_of(proc, task, "wchan"), 4096).value_or("");
  return name == "0" ? std::string() : name;
}

std::vector<event::Task> TaskList::of_processes(const std::vector<int32_t>& pids) const {
  std::vector<event::Task> tasks;
  for (int32_t pid : pids)
    for (int32_t tid : numbers_in(fmt::format("{}/{}/task", proc_, pid))) tasks.push_back({pid, tid});
  return tasks;
}

std::vector<event::Task> TaskList::all() const { return of_processes(numbers_in(proc_)); }

std::vector<event::Task> TaskList::of_families(const std::vector<int32_t>& pids) const {
  std::unordered_multimap<int32_t, int32_t> children;
  for (int32_t pid : numbers_in(proc_))
    if (auto stat = read_proc_stat(proc_, {pid, pid})) children.emplace(stat->parent_pid, pid);
  std::vector<int32_t> family = pids;
  std::unordered_set<int32_t> seen(pids.begin(), pids.end());
  for (size_t i = 0; i < family.size(); i++) {
    const auto [first, last] = children.equal_range(family[i]);
    for (auto it = first; it != last; ++it)
      if (seen.insert(it->second).second) family.push_back(it->second);
  }
  return of_processes(family);
}

std::vector<event::Task> TaskList::of_threads(const std::vector<int32_t>& tids) const {
  std::vector<event::Task> tasks;
  for (int32_t tid : tids) {
    const std::string status = read_text_file(fmt::format("{}/{}/status", proc_, tid), kMostBytes).value_or("");
    if (const uint64_t pid = field_of(status, "\nTgid")) tasks.push_back({static_cast<int32_t>(pid), tid});
  }
  return tasks;
}

std::vector<event::Task> TaskList::of_cgroup(const std::string& path) const {
  const std::string directory = path.starts_with('/') ? path : "/sys/fs/cgroup/" + path;
  std::string text = read_text_file(directory + "/cgroup.procs", kMostBytes).value_or("");
  std::vector<int32_t> pids;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (auto pid = number_of(rest.substr(0, end))) pids.push_back(static_cast<int32_t>(*pid));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return of_processes(pids);
}

}  // namespace cprof::cpustat
