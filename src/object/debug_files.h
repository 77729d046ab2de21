// Finds the separate debug file of an ELF file: build-id directories, then .gnu_debuglink with its checksum, in the
// order that gdb documents. Called by symbolize, once a module. A candidate whose build-id (or, without one, CRC) does not
// match is never used, and a candidate that cannot be used never ends the search.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/diagnostics.h"
#include "object/elf_file.h"

namespace cprof::object {

class DebugFileFinder {
 public:
  explicit DebugFileFinder(std::vector<std::string> roots = {"/usr/lib/debug"}) : roots_(std::move(roots)) {}

  // path: of file, as its process sees it. pid: the target's root is searched first, then ours. nullptr: none.
  // Mismatches and unreadable candidates are counted, one line each kind, which names the first file.
  std::shared_ptr<ElfFile> find(ElfFile& file, const std::string& path, std::optional<int32_t> pid, Diagnostics& diagnostics);

 private:
  struct Search;
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t, int64_t>;  // device, inode, size, mtime

  Result<uint32_t> checksum(const ElfFile& file);

  std::vector<std::string> roots_;
  std::map<FileKey, uint32_t> checksums_;
};

}  // namespace cprof::object
