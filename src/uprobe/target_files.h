// The files in which functions may be probed: those that the target's processes have mapped, a command's program and the
// libraries that the loader will give it, or a file that a pattern names by its path. A file is opened when a pattern asks for it,
// as the target sees it, and probed by that descriptor, so that it is the file that runs. Used by the verb, on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "base/result.h"
#include "object/debug_files.h"
#include "object/elf_file.h"
#include "object/process_files.h"
#include "uprobe/function_pattern.h"

namespace cprof::uprobe {

struct TargetFile {
  std::string path;                    // as the target sees it
  bool is_program = false;
  std::vector<int32_t> pids{};         // processes that have it mapped; empty: not known
  object::FileIdentity identity{};     // where a process has it mapped
  uint64_t start = 0, end = 0;         // of its executable mapping in pids[0]
  std::shared_ptr<object::ElfFile> elf{}, debug{};  // null: not opened

  std::string module() const { return path.substr(path.rfind('/') + 1); }
  std::string open_path() const;       // by which this process and the kernel reach it
};

class TargetFiles {
 public:
  explicit TargetFiles(const object::FilePlaces& places) : finder_(places) {}

  Result<void> add_process(int32_t pid);
  Result<void> add_command(const std::vector<std::string>& argv);

  // Numbers of the files that the pattern means, opened; the rest of a program is looked into only when asked for.
  Result<std::vector<uint32_t>> named_by(const FunctionPattern& pattern, bool with_libraries);
  // Everything that is known by now, opened or not.
  const std::vector<TargetFile>& all() const { return files_; }
  Result<void> open(uint32_t number);

  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Result<void> add_path(const std::string& path, bool is_program);
  Result<void> add_libraries();
  Result<void> find_elsewhere(const FunctionPattern& pattern);
  std::vector<uint32_t> matching(const FunctionPattern& pattern, bool with_libraries) const;

  std::vector<TargetFile> files_;
  std::string command_program_;        // whose libraries have not been asked for yet
  bool has_processes_ = false;
  object::DebugFileFinder finder_;
  Diagnostics diagnostics_;
};

// The files that the loader would map for a program: its own answer.
Result<std::vector<std::string>> libraries_of(const std::string& program);

}  // namespace cprof::uprobe
