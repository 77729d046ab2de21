// Finds the separate debug file of an ELF file: build-id directories, then .gnu_debuglink with its checksum, in the
// order that gdb documents; and, by its build-id, a file that is not where it was mapped from. Called by the pipeline, once
// a module. A candidate whose build-id (or, without one, CRC) does not match is never used, and a candidate that cannot be
// used never ends the search.
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

// Where the user says that files are, besides their own places.
struct FilePlaces {
  std::vector<std::string> debug_directories;  // each like /usr/lib/debug, which comes after them
  std::string root;                            // a copy of another machine's root; "": none
};

class DebugFileFinder {
 public:
  explicit DebugFileFinder(std::vector<std::string> directories = {"/usr/lib/debug"}) : directories_(std::move(directories)) {}
  explicit DebugFileFinder(const FilePlaces& places);

  // path: of file, as its process sees it. pid: the target's root is searched first, then ours. nullptr: none.
  // Mismatches and unreadable candidates are counted, one line each kind, which names the first file.
  std::shared_ptr<ElfFile> find(ElfFile& file, const std::string& path, std::optional<int32_t> pid, Diagnostics& diagnostics);

  // The program or library itself by its build-id: .build-id/ab/cdef of the debug directories, and perf's own cache of
  // files that were recorded (~/.debug). nullptr: none.
  std::shared_ptr<ElfFile> find_by_build_id(std::span<const std::byte> build_id) const;

 private:
  struct Search;
  using FileKey = std::tuple<uint64_t, uint64_t, int64_t, int64_t, int64_t>;  // device, inode, size, mtime

  Result<uint32_t> checksum(const ElfFile& file);

  std::vector<std::string> directories_, cache_directories_;
  std::string root_;
  std::map<FileKey, uint32_t> checksums_;
};

}  // namespace cprof::object
