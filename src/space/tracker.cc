#include "space/tracker.h"

#include <sys/mman.h>

#include <algorithm>
#include <string_view>

namespace cprof::space {
namespace {

// Memory without a file: private; shared, which the kernel calls /dev/zero; on huge pages; of System V.
constexpr std::string_view kAnonymousPaths[] = {"//anon",    "[heap]",         "[anon", "[stack",
                                                "/dev/zero", "/anon_hugepage", "/SYSV"};

bool is_anonymous(std::string_view path) {
  return path.empty() ||
         std::ranges::any_of(kAnonymousPaths, [&](std::string_view start) { return path.starts_with(start); });
}

MappingKind kind_of(const event::Mmap& mmap) {
  if (mmap.path == "[vdso]") return MappingKind::kVdso;
  if (is_anonymous(mmap.path)) return MappingKind::kAnonymous;
  if (mmap.path.starts_with("[")) return MappingKind::kSpecial;
  return MappingKind::kFile;
}

MappingPtr part_of(const Mapping& whole, uint64_t start, uint64_t end) {
  auto part = std::make_shared<Mapping>(whole);
  part->start = start;
  part->end = end;
  part->file_offset = whole.file_offset + (start - whole.start);
  return part;
}

std::shared_ptr<const Mapping> copied_by(const Mapping& anonymous, const AddressMap& maps) {
  const MappingPtr* below = maps.find(anonymous.start);
  if (!below || (*below)->end < anonymous.end || !(*below)->executable) return nullptr;
  return (*below)->kind == MappingKind::kFile ? *below : (*below)->may_copy;
}

}  // namespace

void AddressMap::insert(MappingPtr mapping) {
  cut(mapping->start, mapping->end);
  uint64_t start = mapping->start;
  by_start_[start] = std::move(mapping);
  version_++;
}

void AddressMap::clear() {
  by_start_.clear();
  version_++;
}

void AddressMap::cut(uint64_t start, uint64_t end) {
  auto it = by_start_.upper_bound(start);
  if (it != by_start_.begin()) --it;
  while (it != by_start_.end() && it->first < end) {
    MappingPtr old = it->second;
    if (old->end <= start) {
      ++it;
      continue;
    }
    it = by_start_.erase(it);
    if (old->start < start) by_start_[old->start] = part_of(*old, old->start, start);
    if (old->end > end) {
      by_start_[end] = part_of(*old, end, old->end);
      break;
    }
  }
}

const MappingPtr* AddressMap::find(uint64_t address) const {
  auto it = by_start_.upper_bound(address);
  if (it == by_start_.begin()) return nullptr;
  --it;
  return address < it->second->end ? &it->second : nullptr;
}

void Tracker::apply(const event::Mmap& mmap) {
  uint64_t end = mmap.start + mmap.length;
  if (mmap.length == 0 || end < mmap.start) return;
  auto mapping = std::make_shared<Mapping>();
  mapping->start = mmap.start;
  mapping->end = end;
  mapping->file_offset = mmap.file_offset;
  mapping->file = mmap.file;
  mapping->path = mmap.path;
  mapping->build_id.assign(mmap.build_id.begin(), mmap.build_id.end());
  mapping->kind = kind_of(mmap);
  // Plain MMAP records carry no protection; the kernel sends them for executable mappings only.
  mapping->executable = mmap.protection == 0 || (mmap.protection & PROT_EXEC);
  if (mmap.task.pid == -1) return kernel_.insert(std::move(mapping));
  AddressMap& maps = thread(mmap.task, mmap.time_ns).process->maps;
  if (mapping->kind == MappingKind::kAnonymous && mapping->executable) mapping->may_copy = copied_by(*mapping, maps);
  maps.insert(std::move(mapping));
}

void Tracker::apply(const event::Comm& comm) {
  Thread& t = thread(comm.task, comm.time_ns);
  t.name = comm.name;
  Process& p = *t.process;
  if (t.tid == p.pid || p.name.empty()) p.name = comm.name;
  if (!comm.exec) return;
  p.is_cgroup_known = false;  // whoever starts a container moves itself there before
  p.image_before_exec = p.maps;
  p.maps.clear();
}

void Tracker::apply(const event::Fork& fork) {
  if (fork.child.pid == fork.parent.pid) {
    Process& p = process(fork.child.pid, fork.time_ns);
    std::string inherited = thread(fork.parent, fork.time_ns).name;
    add_thread(p, fork.child.tid, fork.time_ns).name = inherited;
    return;
  }
  Thread& parent = thread(fork.parent, fork.time_ns);
  Process& child = add_process(fork.child.pid, fork.time_ns);
  child.maps = parent.process->maps;
  child.name = parent.name;
  child.parent_pid = fork.parent.pid;
  child.cgroup = parent.process->cgroup;
  add_thread(child, fork.child.tid, fork.time_ns).name = parent.name;
}

void Tracker::apply(const event::Cgroup& cgroup) {
  Process& p = process(cgroup.task.pid, cgroup.time_ns);
  p.cgroup = cgroup.path;
  p.is_cgroup_known = true;
}

void Tracker::apply(const event::Exit& exit) {
  auto it = current_.find(exit.task.pid);
  if (it == current_.end()) return;
  Process& p = *it->second;
  auto t = p.threads.find(exit.task.tid);
  if (t == p.threads.end() || t->second->end_ns) return;
  t->second->end_ns = exit.time_ns;
  if (--p.living_threads == 0) p.end_ns = exit.time_ns;
}

Thread& Tracker::thread(const event::Task& task, uint64_t time_ns) {
  Process& p = process(task.pid, time_ns);
  if (auto it = p.threads.find(task.tid); it != p.threads.end()) return *it->second;
  Thread& t = add_thread(p, task.tid, time_ns);
  t.name = p.name;
  return t;
}

Process& Tracker::process(int32_t pid, uint64_t time_ns) {
  if (auto it = current_.find(pid); it != current_.end()) return *it->second;
  return add_process(pid, time_ns);
}

void Tracker::forget_ended(uint64_t before_ns, const std::function<void(const Thread&)>& forgotten) {
  auto is_over = [&](const Thread& t) {
    bool over = t.end_ns && t.end_ns < before_ns;
    if (over) forgotten(t);
    return over;
  };
  std::erase_if(all_, [&](const std::unique_ptr<Process>& p) {
    std::erase_if(p->reused_threads, [&](const auto& t) { return is_over(*t); });
    std::erase_if(p->threads, [&](const auto& entry) { return is_over(*entry.second); });
    bool over = p->end_ns && p->end_ns < before_ns && p->threads.empty() && p->reused_threads.empty();
    if (auto it = current_.find(p->pid); over && it != current_.end() && it->second == p.get()) current_.erase(it);
    return over;
  });
}

Process& Tracker::add_process(int32_t pid, uint64_t time_ns) {
  all_.push_back(std::make_unique<Process>());
  Process& p = *all_.back();
  p.pid = p.access_tid = pid;
  p.serial = next_serial_++;
  p.start_ns = time_ns;
  current_[pid] = &p;
  return p;
}

Thread& Tracker::add_thread(Process& process, int32_t tid, uint64_t time_ns) {
  auto& slot = process.threads[tid];
  if (slot && !slot->end_ns) return *slot;  // a fork record that repeats what /proc already told
  if (slot) process.reused_threads.push_back(std::move(slot));
  slot = std::make_unique<Thread>();
  slot->tid = tid;
  slot->process = &process;
  slot->start_ns = time_ns;
  process.living_threads++;
  process.end_ns = 0;
  return *slot;
}

}  // namespace cprof::space
