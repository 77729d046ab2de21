// Finds the separate debug file of an ELF file: build-id directories, then .gnu_debuglink with its checksum, in the
// order that gdb documents. A candidate whose build-id (or, without one, CRC) does not match is never used.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "object/elf_file.h"

namespace cprof::object {

class DebugFileFinder {
 public:
  explicit DebugFileFinder(std::vector<std::string> roots = {"/usr/lib/debug"}) : roots_(std::move(roots)) {}

  // pid: also looks inside the target's root. Mismatches and unreadable candidates are counted, one line each kind.
  std::shared_ptr<ElfFile> find(ElfFile& file, const std::string& path, std::optional<int32_t> pid, Diagnostics& diagnostics);

 private:
  std::vector<std::string> roots_;
};

}  // namespace cprof::object
