// The mapped files, by number, as the BPF programs name them: each is opened and its unwind table copied into the kernel
// when somebody asks for it, and not before. Called by ProcessBook and BpfCollector, on their thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/diagnostics.h"
#include "collect/bpf/sampler_maps.h"
#include "collect/bpf/table_store.h"
#include "object/debug_files.h"
#include "object/elf_file.h"
#include "space/tracker.h"
#include "unwind/cfi/module_table.h"

namespace cprof::collect {

class ModuleBook {
 public:
  ModuleBook(SamplerMaps& maps, Diagnostics& diagnostics);

  // The number of the file behind this mapping; 0: memory without a file.
  uint32_t number_of(const space::Mapping& mapping);
  // What turns an address in this mapping into the module's file offset.
  uint64_t bias_of(uint32_t number, const space::Mapping& mapping) const;

  // Somewhere the file is mapped, which is how it can be opened; start and end 0: somewhere in this process.
  struct Place {
    int32_t tid = 0;
    uint64_t start = 0, end = 0;
  };
  // Opens the file and publishes its table, unless that was done. True: the bias of its mappings has changed.
  bool make_table(uint32_t number, std::span<const Place> places);
  bool is_made(uint32_t number) const { return number == 0 || modules_[number].made; }
  // What the tables' CFI lacked.
  void report(Diagnostics& diagnostics) const { diagnostics.merge(tables_.diagnostics()); }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, std::string, std::string>;

  struct Module {
    std::string path;
    event::FileId file;
    std::vector<std::byte> build_id;
    bool is_vdso = false;
    bool made = false;                  // or given up
    bool failed = false;
    std::shared_ptr<object::ElfFile> elf;  // kept only where mappings need their own bias
    uint64_t delta = 0;                 // svma - file offset of its first code
  };

  Result<std::shared_ptr<object::ElfFile>> open(const Module& module, std::span<const Place> places);
  Result<void> publish(uint32_t number, object::ElfFile& elf, int32_t tid);

  SamplerMaps& maps_;
  Diagnostics& diagnostics_;
  TableStore store_;
  unwind::TableCache tables_;
  object::DebugFileFinder finder_;
  std::map<Key, uint32_t> numbers_;
  std::vector<Module> modules_;         // by number; 0 is nobody
};

}  // namespace cprof::collect
