// Gives every location its name and source lines, once, when a run has ended: ELF and DWARF symbols, the kernel's, and
// the perf maps of JIT compilers. A location that stays unnamed keeps its function's start, and the reason is counted.
#pragma once

#include <map>

#include "pipeline/pipeline.h"
#include "pipeline/stack_interner.h"

namespace cprof::pipeline {

class Namer {
 public:
  Namer(const Options& options, profile::ProfileBuilder& builder, Modules& modules, StackInterner& interner,
        Diagnostics& diagnostics);
  ~Namer();

  void name_all();

 private:
  void name_file(ModuleFile& file, std::span<const profile::LocationId> locations);
  void name_kernel(profile::LocationId id);
  bool open_late(ModuleFile& file, std::span<const profile::LocationId> locations);
  void name_location(const ModuleFile& file, profile::LocationId id, const symbolize::Symbolized& found);
  void name_jit(profile::LocationId id);
  void set_jit_name(profile::LocationId id, int32_t pid, const JitNames::Name& name);
  void note_unnamed_jit();
  profile::LocationId jit_location_at(profile::LocationId id, uint64_t time_ns);
  void set_lines(profile::LocationId id, const symbolize::Symbolized& symbolized);
  void set_name(profile::LocationId id, std::string_view name, uint64_t function_start, std::string_view file = {}, uint32_t line = 0);

  const Options& options_;
  profile::ProfileBuilder& builder_;
  Modules& modules_;
  StackInterner& interner_;
  Diagnostics& diagnostics_;
  symbolize::Demangler demangler_;
  std::vector<profile::Line> lines_;
  std::vector<profile::LocationId> changing_;  // named by what lay there last
  std::map<std::pair<uint32_t, uint32_t>, profile::LocationId> earlier_;  // by the location and the code that lay there
};

}  // namespace cprof::pipeline
