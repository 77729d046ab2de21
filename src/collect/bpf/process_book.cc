// A process is told anew when its mappings have changed: its entries are written to a place that no program reads, then
// the process is pointed there. The kernel side does not believe entries that were seen before the last exec, and copies
// the parent's at a fork, so that what is told here late does no harm.
#include "collect/bpf/process_book.h"

#include <algorithm>
#include <cstring>

namespace cprof::collect {
namespace {

constexpr size_t kMostReplaced = 64;
constexpr size_t kMostMappings = (1u << SAMPLER_MAPPING_STEPS) - 1;
// The exec event of the BPF program comes after the last of the side band's by at most this.
constexpr uint64_t kExecTakesNs = 20'000'000;
// Many mappings of a process that maps all the time are told after so long for each: few percent of a CPU.
constexpr size_t kManyMappings = 256;
constexpr uint64_t kPauseNsAMapping = 20'000;

bool is_same(const std::vector<sampler_mapping>& a, const std::vector<sampler_mapping>& b) {
  return a.size() == b.size() && (a.empty() || memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
}

std::vector<space::MappingPtr> overlapping(const space::AddressMap& maps, const event::Mmap& mmap) {
  std::vector<space::MappingPtr> found;
  auto it = maps.all().upper_bound(mmap.start);
  if (it != maps.all().begin()) --it;
  for (; it != maps.all().end() && it->first < mmap.start + mmap.length; ++it)
    if (it->second->end > mmap.start) found.push_back(it->second);
  return found;
}

// A JIT's memory grows, and is told as a whole each time; two segments of a file may become one.
bool is_same_code(const space::Mapping& a, const space::Mapping& b) {
  if (a.kind != b.kind || a.executable != b.executable || a.may_copy || b.may_copy) return false;
  if (a.kind == space::MappingKind::kAnonymous) return true;
  return a.file == b.file && a.path == b.path && a.build_id == b.build_id && a.start - a.file_offset == b.start - b.file_offset;
}

}  // namespace

ProcessBook::ProcessBook(SamplerMaps& maps, ModuleBook& modules, bool makes_tables, Diagnostics& diagnostics)
    : maps_(maps), modules_(modules), makes_tables_(makes_tables), diagnostics_(diagnostics), ranges_(SAMPLER_MAX_MAPPINGS) {}

void ProcessBook::apply(const event::Event& event) {
  if (const auto* mmap = std::get_if<event::Mmap>(&event)) on(*mmap);
  else if (const auto* comm = std::get_if<event::Comm>(&event)) on(*comm);
  else if (const auto* fork = std::get_if<event::Fork>(&event)) on(*fork);
  else if (const auto* exit = std::get_if<event::Exit>(&event)) on(*exit);
}

void ProcessBook::on(const event::Mmap& mmap) {
  std::vector<space::MappingPtr> before;
  if (told_.contains(mmap.task.pid)) before = overlapping(tracker_.process(mmap.task.pid, mmap.time_ns).maps, mmap);
  tracker_.apply(mmap);
  if (!before.empty()) note_replaced(mmap, before);
  if (mmap.task.pid > 0) changed_.insert(mmap.task.pid);
}

// Unmapping is not reported: other code in the old one's place is how it shows.
void ProcessBook::note_replaced(const event::Mmap& mmap, const std::vector<space::MappingPtr>& before) {
  const space::MappingPtr* now = tracker_.process(mmap.task.pid, mmap.time_ns).maps.find(mmap.start);
  for (const space::MappingPtr& old : before) {
    if (now && is_same_code(*old, **now)) continue;
    std::vector<Replaced>& replaced = replaced_[mmap.task.pid];
    if (replaced.size() == kMostReplaced) replaced.erase(replaced.begin());
    replaced.push_back({mmap.time_ns, std::max(old->start, mmap.start), std::min(old->end, mmap.start + mmap.length)});
  }
}

size_t ProcessBook::believable(int32_t pid, uint64_t seen_ns, uint64_t time_ns, std::span<const uint64_t> frames) const {
  auto it = replaced_.find(pid);
  if (it == replaced_.end()) return frames.size();
  auto is_doubtful = [&](uint64_t pc) {
    return std::ranges::any_of(it->second, [&](const Replaced& r) {
      return r.time_ns > seen_ns && r.time_ns <= time_ns && pc >= r.start && pc < r.end;
    });
  };
  return static_cast<size_t>(std::ranges::find_if(frames, is_doubtful) - frames.begin());
}

void ProcessBook::on(const event::Comm& comm) {
  tracker_.apply(comm);
  if (!comm.exec) return;
  changed_.insert(comm.task.pid);
  executed_[comm.task.pid] = comm.time_ns;
}

void ProcessBook::on(const event::Fork& fork) {
  tracker_.apply(fork);
  if (fork.child.pid != fork.parent.pid) changed_.insert(fork.child.pid);
}

void ProcessBook::on(const event::Exit& exit) {
  tracker_.apply(exit);
  if (tracker_.process(exit.task.pid, exit.time_ns).end_ns) forget(exit.task.pid, exit.time_ns);
}

void ProcessBook::forget(int32_t pid, uint64_t now_ns) {
  changed_.erase(pid);
  later_.erase(pid);
  executed_.erase(pid);
  replaced_.erase(pid);
  maps_.drop_process(pid);  // what the program gave it by itself, too
  auto it = told_.find(pid);
  if (it == told_.end()) return;
  ranges_.give_back(it->second.range, now_ns);
  told_.erase(it);
}

std::vector<sampler_mapping> ProcessBook::mappings_of(space::Process& process) {
  std::vector<sampler_mapping> mappings;
  bool again = false;
  for (const auto& [start, mapping] : process.maps.all()) {
    if (!mapping->executable) continue;
    uint32_t module = modules_.number_of(*mapping);
    ModuleBook::Place place{process.pid, mapping->start, mapping->end};
    if (makes_tables_) again |= modules_.make_table(module, {&place, 1});
    sampler_mapping& told = mappings.emplace_back();
    told = {mapping->start, mapping->end, 0, module, 0};
    if (module) told.bias = modules_.bias_of(module, *mapping);
    if (mapping->may_copy) told.flags = SAMPLER_MAPPING_UNSURE;
  }
  if (again) tell_all_again();
  return mappings;
}

// What has no table goes first: memory of JIT compilers, where frame pointers are followed in any case.
void ProcessBook::cut(Told& told, std::vector<sampler_mapping>& mappings) {
  if (mappings.size() <= kMostMappings) return;
  const size_t over = mappings.size() - kMostMappings;
  size_t without_table = over;
  std::erase_if(mappings, [&](const sampler_mapping& m) { return m.module == 0 && without_table > 0 && without_table--; });
  if (mappings.size() > kMostMappings) mappings.resize(kMostMappings);
  if (over > told.cut)
    diagnostics_.add("bpf_mappings_cut", Severity::kNotice,
                     "executable mappings of one process beyond the 4,095 that the BPF program searches", over - told.cut);
  told.cut = std::max(told.cut, over);
}

// False: no room.
bool ProcessBook::place(Told& told, std::vector<sampler_mapping> mappings, uint64_t seen_ns) {
  auto range = ranges_.take(static_cast<uint32_t>(mappings.size()));
  if (!range) return false;
  std::ranges::copy(mappings, maps_.mappings().begin() + range->first);
  ranges_.give_back(told.range, seen_ns);
  told.range = *range;
  told.mappings = std::move(mappings);
  told.epoch++;
  return true;
}

void ProcessBook::tell(space::Process& process, uint64_t seen_ns) {
  std::vector<sampler_mapping> mappings = mappings_of(process);
  Told& told = told_[process.pid];
  told.again_ns = mappings.size() > kManyMappings ? seen_ns + kPauseNsAMapping * mappings.size() : 0;
  cut(told, mappings);
  bool is_placed = told.range.size && is_same(told.mappings, mappings);
  if (!is_placed) is_placed = place(told, std::move(mappings), seen_ns);
  sampler_process entry{told.range.first, static_cast<uint32_t>(told.mappings.size()), seen_ns, told.epoch, 0};
  if (is_placed && maps_.set_process(process.pid, entry)) return;
  forget(process.pid, seen_ns);
  diagnostics_.add("bpf_processes_full", Severity::kNotice,
                   "processes beyond what the BPF program can hold; their stacks are unwound from snapshots", 1);
}

void ProcessBook::publish(uint64_t seen_ns) {
  ranges_.reclaim(seen_ns);
  std::set<int32_t> changed = std::exchange(changed_, {});
  changed.merge(std::exchange(later_, {}));
  for (auto it = executed_.begin(); it != executed_.end();) {
    changed.insert(it->first);
    it = it->second + kExecTakesNs < seen_ns ? executed_.erase(it) : std::next(it);
  }
  for (int32_t pid : changed) {
    if (auto told = told_.find(pid); told != told_.end() && told->second.again_ns > seen_ns && !executed_.contains(pid)) {
      later_.insert(pid);
      continue;
    }
    space::Process& process = tracker_.process(pid, seen_ns);
    if (!process.end_ns && !process.maps.empty()) tell(process, seen_ns);
  }
}

// Any process that still lives may open the file.
void ProcessBook::make_table(uint32_t module, int32_t pid) {
  std::vector<ModuleBook::Place> places{{pid, 0, 0}};
  for (const auto& [other, told] : told_)
    for (const sampler_mapping& mapping : told.mappings)
      if (mapping.module == module) places.push_back({other, mapping.start, mapping.end});
  if (modules_.make_table(module, places)) tell_all_again();
}

// The biases of mappings may have changed.
void ProcessBook::tell_all_again() {
  for (const auto& [pid, told] : told_) changed_.insert(pid);
}

}  // namespace cprof::collect
