// The ELF files behind mappings: opened once per file (inside the target's root, identity checked), with their unwind
// table and symbols, shared by every process that maps them. Called by the pipeline only, on its thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "base/diagnostics.h"
#include "object/debug_files.h"
#include "object/elf_file.h"
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
};

// One mapping's view of its file.
struct MappedModule {
  space::MappingPtr mapping;  // kept alive: the cache key is its address
  ModuleFile* file = nullptr; // null: anonymous or special memory
  uint64_t bias = 0;          // avma - svma
};

class Modules {
 public:
  explicit Modules(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}
  // Before the first of(). Of another machine's recording only files with a known build-id are used.
  void set_surroundings(const Surroundings& surroundings) { surroundings_ = surroundings; }
  const Surroundings& surroundings() const { return surroundings_; }

  const MappedModule& of(const space::Process& process, const space::MappingPtr& mapping);
  object::ElfFile* debug_file(ModuleFile& file);
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

  Diagnostics& diagnostics_;
  Surroundings surroundings_;
  std::map<FileKey, std::unique_ptr<ModuleFile>> files_;
  std::unordered_map<uint32_t, std::unordered_map<const space::Mapping*, MappedModule>> mapped_;
  object::DebugFileFinder finder_;
  unwind::TableCache tables_;
};

}  // namespace cprof::pipeline
