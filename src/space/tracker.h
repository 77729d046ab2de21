// Processes, threads and their mappings as they change during a run. The pipeline feeds it every event in time order and
// asks where an address lies now; nothing here opens files or reads /proc.
// A pid that is used again is a new Process (a new generation): samples of the dead one keep theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/number_map.h"
#include "event/event.h"

namespace cprof::space {

enum class MappingKind : uint8_t { kFile, kVdso, kAnonymous, kSpecial };

// One mapped region. Shared between processes after fork; never changed once made.
struct Mapping {
  uint64_t start = 0, end = 0, file_offset = 0;
  event::FileId file;
  std::string path;
  std::vector<std::byte> build_id;
  MappingKind kind = MappingKind::kFile;
  bool executable = false;
  // Anonymous code that was put in place over a part of this file's text: a copy on huge pages, or something else
  // altogether after the file was unmapped. Only its bytes can tell.
  std::shared_ptr<const Mapping> may_copy;
};
using MappingPtr = std::shared_ptr<const Mapping>;

class AddressMap {
 public:
  // Replaces whatever lay in the new mapping's range; neighbours that it cuts keep their remaining parts.
  void insert(MappingPtr mapping);
  void clear();
  const MappingPtr* find(uint64_t address) const;
  const std::map<uint64_t, MappingPtr>& all() const { return by_start_; }
  bool empty() const { return by_start_.empty(); }
  size_t size() const { return by_start_.size(); }
  uint64_t version() const { return version_; }  // changes with every change

 private:
  void cut(uint64_t start, uint64_t end);

  std::map<uint64_t, MappingPtr> by_start_;
  uint64_t version_ = 0;
};

struct Process;

struct Thread {
  int32_t tid = 0;
  Process* process = nullptr;
  std::string name;
  uint64_t start_ns = 0, end_ns = 0;  // end 0: alive
};

struct Process {
  int32_t pid = 0;
  uint32_t serial = 0;                // unique in the run
  std::string name;                   // the main thread's, or what the parent had
  int32_t parent_pid = 0;             // 0: not told
  std::string cgroup;                 // "" unknown; the parent's until it is told
  bool is_cgroup_known = false;       // told of this process since it began, or executed
  uint64_t start_ns = 0, end_ns = 0;  // end 0: alive
  AddressMap maps;
  AddressMap image_before_exec;       // a sample inside execve still has the old image's registers
  NumberMap<int32_t, std::unique_ptr<Thread>> threads;  // living and ended ones
  std::vector<std::unique_ptr<Thread>> reused_threads;           // ended, their tid was given to another thread
  size_t living_threads = 0;
  int32_t access_tid = 0;             // the pipeline's: a thread that lives, whose /proc entry shows what the process sees
  uint64_t last_rescan_ns = 0;        // the pipeline's: when /proc/PID/maps was last read again
};

class Tracker {
 public:
  void apply(const event::Mmap& mmap);
  void apply(const event::Comm& comm);
  void apply(const event::Fork& fork);
  void apply(const event::Exit& exit);
  void apply(const event::Cgroup& cgroup);

  // The thread that runs as this task now; made when unknown.
  Thread& thread(const event::Task& task, uint64_t time_ns);
  Process& process(int32_t pid, uint64_t time_ns);

  // Lets go of threads and processes that ended before then. forgotten(thread): before it is gone.
  void forget_ended(uint64_t before_ns, const std::function<void(const Thread&)>& forgotten);

  const std::vector<std::unique_ptr<Process>>& all() const { return all_; }
  const AddressMap& kernel() const { return kernel_; }

 private:
  Process& add_process(int32_t pid, uint64_t time_ns);
  Thread& add_thread(Process& process, int32_t tid, uint64_t time_ns);

  std::vector<std::unique_ptr<Process>> all_;
  NumberMap<int32_t, Process*> current_;
  uint32_t next_serial_ = 0;
  AddressMap kernel_;
};

}  // namespace cprof::space
