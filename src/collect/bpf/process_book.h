// Follows every process's mappings by the side band's events and tells them to the BPF programs. Called by BpfCollector,
// on its thread: apply() for each event in time order, publish() when everything up to a time has been applied.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "collect/bpf/mapping_ranges.h"
#include "collect/bpf/module_book.h"
#include "collect/bpf/sampler_maps.h"
#include "event/event.h"
#include "space/tracker.h"

namespace cprof::collect {

class ProcessBook {
 public:
  // makes_tables: for few processes, tables of all that they map are made before anyone asks.
  ProcessBook(SamplerMaps& maps, ModuleBook& modules, bool makes_tables, Diagnostics& diagnostics);

  void apply(const event::Event& event);
  // seen_ns: everything that happened until then has been applied.
  void publish(uint64_t seen_ns);
  // How many of these frames can be believed, walked at time_ns by mappings as of seen_ns: those before the first that
  // lies where other code was mapped in between. The programs learn of that a little late.
  size_t believable(int32_t pid, uint64_t seen_ns, uint64_t time_ns, std::span<const uint64_t> frames) const;
  // A program wants the table of this module; pid: for this process.
  void make_table(uint32_t module, int32_t pid);
  // There is news that the next publish() will tell.
  bool is_behind() const { return !changed_.empty() || !executed_.empty(); }

 private:
  struct Told {
    MappingRanges::Range range;
    std::vector<sampler_mapping> mappings;
    uint32_t epoch = 0;
    uint64_t again_ns = 0;  // not before this
    size_t cut = 0;         // mappings that were too many, at the most
  };

  struct Replaced {
    uint64_t time_ns, start, end;
  };

  void on(const event::Mmap& mmap);
  void note_replaced(const event::Mmap& mmap, const std::vector<space::MappingPtr>& before);
  void on(const event::Comm& comm);
  void on(const event::Fork& fork);
  void on(const event::Exit& exit);
  void tell(space::Process& process, uint64_t seen_ns);
  bool place(Told& told, std::vector<sampler_mapping> mappings, uint64_t seen_ns);
  std::vector<sampler_mapping> mappings_of(space::Process& process);
  void cut(Told& told, std::vector<sampler_mapping>& mappings);
  void forget(int32_t pid, uint64_t now_ns);
  void tell_all_again();

  SamplerMaps& maps_;
  ModuleBook& modules_;
  bool makes_tables_;
  Diagnostics& diagnostics_;
  space::Tracker tracker_;
  MappingRanges ranges_;
  std::set<int32_t> changed_;
  std::set<int32_t> later_;                     // changed, but told lately and large
  std::map<int32_t, uint64_t> executed_;        // when; told once more when that is surely over in the kernel
  std::unordered_map<int32_t, Told> told_;
  std::unordered_map<int32_t, std::vector<Replaced>> replaced_;  // the latest few of each process
};

}  // namespace cprof::collect
