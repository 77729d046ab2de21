#include "collect/perf/running_tasks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "object/process_files.h"

namespace cprof::collect {
namespace {

using event::Task;

event::Mmap mmap_event(int32_t pid, uint64_t time_ns, const object::MapsEntry& entry) {
  event::Mmap mmap{.time_ns = time_ns, .task = {pid, pid}, .start = entry.start, .length = entry.end - entry.start,
                   .file_offset = entry.file_offset};
  mmap.protection = (entry.readable ? PROT_READ : 0) | (entry.writable ? PROT_WRITE : 0) | PROT_EXEC;
  mmap.flags = entry.shared ? MAP_SHARED : MAP_PRIVATE;
  mmap.file = {entry.major, entry.minor, entry.inode, 0};
  // The name the kernel's own records give to memory without a file.
  mmap.path = entry.path.empty() ? std::string_view("//anon") : std::string_view(entry.path);
  return mmap;
}

// The thread group of a thread: the Tgid line of its status.
Result<int32_t> process_of(int32_t tid) {
  std::string text = TRY(read_text_file("/proc/" + std::to_string(tid) + "/status", 64 * 1024));
  size_t at = text.find("\nTgid:\t");
  int32_t pid = 0;
  if (at == text.npos) return fail("/proc/" + std::to_string(tid) + "/status: no Tgid line");
  std::from_chars(text.data() + at + 7, text.data() + text.size(), pid);
  return pid;
}

// A main thread that has ended while others go on has no maps any more: any living thread shows them.
std::vector<object::MapsEntry> maps_of(const std::vector<int32_t>& threads) {
  for (int32_t tid : threads) {
    auto maps = object::read_maps(tid);
    if (maps && !maps->empty()) return std::move(*maps);
  }
  return {};
}

}  // namespace

Result<std::vector<int32_t>> find_by_name(std::string_view name) {
  std::vector<int32_t> found;
  for (int32_t pid : TRY(object::list_processes())) {
    if (pid == getpid()) continue;
    auto status = object::read_status(pid, pid);
    if (status && status->comm == name) found.push_back(pid);
  }
  if (found.empty()) return fail("no process is named \"" + std::string(name) + "\"", ESRCH);
  std::ranges::sort(found);
  return found;
}

Result<std::vector<Task>> threads_of(const std::vector<int32_t>& pids) {
  std::vector<Task> tasks;
  for (int32_t pid : pids) {
    auto threads = object::list_threads(pid);
    if (!threads || threads->empty()) return fail("no such process " + std::to_string(pid), ESRCH);
    for (int32_t tid : *threads) tasks.push_back({pid, tid});
  }
  return tasks;
}

Result<std::vector<Task>> tasks_of(const std::vector<int32_t>& tids) {
  std::vector<Task> tasks;
  for (int32_t tid : tids) {
    auto pid = process_of(tid);
    if (!pid) return fail("no such thread " + std::to_string(tid), ESRCH);
    tasks.push_back({*pid, tid});
  }
  return tasks;
}

Result<void> describe_process(int32_t pid, uint64_t time_ns, event::EventSink& sink) {
  auto threads = object::list_threads(pid);
  if (!threads) return {};
  // The main thread first: its name is the process's.
  std::ranges::sort(*threads, [&](int32_t a, int32_t b) { return std::pair(a != pid, a) < std::pair(b != pid, b); });
  for (int32_t tid : *threads) {
    auto status = object::read_status(pid, tid);
    if (status) TRY(sink.on_event(event::Comm{.time_ns = time_ns, .task = {pid, tid}, .name = status->comm}));
  }
  for (const object::MapsEntry& entry : maps_of(*threads))
    if (entry.executable) TRY(sink.on_event(mmap_event(pid, time_ns, entry)));
  return {};
}

Result<void> describe_all_processes(uint64_t time_ns, event::EventSink& sink) {
  for (int32_t pid : TRY(object::list_processes())) TRY(describe_process(pid, time_ns, sink));
  return {};
}

}  // namespace cprof::collect
