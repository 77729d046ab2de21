// Names what a running recording holds so far (Pipeline::so_far()), again and again: what was named once is kept by file
// and address, whatever the rows' numbers, so that each round costs what is new. Files are opened through a process that
// maps them, inside its root. Used by session::LiveRecording, on its thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "object/kernel_symbols.h"
#include "pipeline/file_sources.h"
#include "pipeline/jit_names.h"
#include "pipeline/pipeline.h"

namespace cprof::pipeline {

class LiveNamer {
 public:
  explicit LiveNamer(const Options& options)
      : options_(options), sources_(options.sources), demangler_(options.demangle), none_(texts_.intern("")) {}

  // A copy, with names.
  profile::Profile name(const profile::Profile& so_far);

 private:
  struct Line {
    StringId name, system_name, file;  // in texts_
    uint32_t line = 0, column = 0, start_line = 0;
  };
  struct Named {
    std::vector<Line> lines;
    uint64_t function_start = 0;
  };
  struct File {
    std::shared_ptr<object::ElfFile> elf, debug;
    std::unique_ptr<symbolize::ModuleSymbols> symbols;
    std::unordered_map<uint64_t, Named> by_address;  // svma
    std::string path;
    unsigned tries = 0;
  };
  class Copy;

  File& file_of(const profile::Profile& profile, const profile::Mapping& mapping);
  void open(File& file, const profile::Profile& profile, const profile::Mapping& mapping, int32_t pid);
  void learn(File& file, std::vector<uint64_t>& svmas);
  void learn_files(const profile::Profile& profile, const std::vector<int32_t>& pids);
  Named remember(const symbolize::Symbolized& found);
  Named one_line(std::string_view name, uint64_t function_start);
  const Named* find(const profile::Profile& profile, const profile::Location& location, int32_t pid);
  const Named* find_kernel(uint64_t address);

  const Options options_;
  FileSources sources_;
  symbolize::Demangler demangler_;
  StringTable texts_;
  const StringId none_;
  std::unordered_map<std::string, File> files_;  // by path and build-id
  std::optional<object::KernelSymbols> kernel_symbols_;
  bool are_kernel_symbols_tried_ = false;
  std::unordered_map<uint64_t, Named> kernel_;   // by address
  JitNames jit_names_;
  Named made_;  // the last that find() made up
  Diagnostics ignored_;  // the same misses come with every round
};

}  // namespace cprof::pipeline
