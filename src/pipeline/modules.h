// The ELF files behind mappings: opened once per file (inside the target's root, identity checked), with their unwind
// table and symbols, shared by every process that maps them. Called by the pipeline only, on its thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/diagnostics.h"
#include "object/elf_file.h"
#include "pipeline/file_sources.h"
#include "pipeline/surroundings.h"
#include "space/tracker.h"
#include "symbolize/symbolizer.h"
#include "unwind/cfi/module_table.h"

namespace cprof::pipeline {

struct ModuleFile {
  std::string path;
  std::shared_ptr<object::ElfFile> elf;       // null: could not be opened; error says why
  std::shared_ptr<object::ElfFile> debug;     // separate debug file, once looked for
  std::shared_ptr<const unwind::ModuleTable> table;  // null: no usable unwind information
  std::string build_id;                       // hex
  std::string error;
  int32_t a_pid = 0;                          // a process that maps it: its root is where the debug file may be
  bool debug_searched = false;
  bool is_generated = false;                  // no program at all: a compiler wrote code into it while the process ran
};

// One mapping's view of its file.
struct MappedModule {
  space::MappingPtr mapping;  // kept alive: the cache key is its address
  ModuleFile* file = nullptr; // null: anonymous or special memory, or a file of generated code
  uint64_t bias = 0;          // avma - svma
};

class Modules {
 public:
  // may_fetch: a missing file may be asked of a server while the run goes on (a replay has the time).
  Modules(Diagnostics& diagnostics, const NameSources& sources, bool may_fetch)
      : diagnostics_(diagnostics), sources_(sources), may_fetch_(may_fetch) {}
  // Before the first of(). Of another machine's recording only files with a known build-id are used.
  void set_surroundings(const Surroundings& surroundings) { surroundings_ = surroundings; }
  const Surroundings& surroundings() const { return surroundings_; }

  const MappedModule& of(const space::Process& process, const space::MappingPtr& mapping);
  object::ElfFile* debug_file(ModuleFile& file);
  // Both for naming, when the run is over.
  void fetch_debug_file(ModuleFile& file);
  bool open_elsewhere(ModuleFile& file);
  // Of a mapping of a process that lives, without reading more of the file; empty when it cannot be read. Valid until the next.
  std::span<const std::byte> build_id_of(const event::Mmap& mmap);
  // What the unwind tables could not use, of all files.
  void report(Diagnostics& diagnostics) const { diagnostics.merge(tables_.diagnostics()); }
  void forget(const space::Process& process) { mapped_.erase(process.serial); }
  // Mappings that are in no address space any more.
  void forget_unmapped() {
    for (auto& [serial, mapped] : mapped_)
      std::erase_if(mapped, [](const auto& entry) { return entry.second.mapping.use_count() == 1; });
  }

 private:
  using FileKey = std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, std::string, std::string>;

  ModuleFile* file_of(const space::Process& process, const space::Mapping& mapping);
  void open(ModuleFile& file, const space::Process& process, const space::Mapping& mapping);
  void compile(ModuleFile& file);

  Result<std::shared_ptr<object::ElfFile>> open_elf(const space::Process& process, const space::Mapping& mapping) const;
  bool is_generated_code(const space::Process& process, const space::Mapping& mapping) const;

  Diagnostics& diagnostics_;
  Surroundings surroundings_;
  std::map<FileKey, std::unique_ptr<ModuleFile>> files_;
  std::map<std::pair<event::FileId, std::string>, std::vector<std::byte>> build_ids_;
  std::unordered_map<uint32_t, std::unordered_map<const space::Mapping*, MappedModule>> mapped_;
  FileSources sources_;
  bool may_fetch_;
  unwind::TableCache tables_;
};

}  // namespace cprof::pipeline
