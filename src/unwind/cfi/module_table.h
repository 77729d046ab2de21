// Everything needed to unwind through one ELF file: compact rows compiled from .eh_frame and .debug_frame, plus the CFI
// bytes for what rows cannot hold. Immutable once built; shared by every process that maps the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/diagnostics.h"
#include "base/fd.h"
#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::unwind {

class ModuleTable {
 public:
  // debug_file: where .debug_frame may live when the file itself has none; may be null.
  static Result<std::shared_ptr<const ModuleTable>> compile(object::ElfFile& file, object::ElfFile* debug_file);

  // The [start, end) in svma of the FDE that holds svma; identity of unnamed functions.
  std::optional<std::pair<uint64_t, uint64_t>> function_range(uint64_t svma) const;
  // Whether svma lies in the code that a signal handler returns to: what called it was interrupted and called nothing.
  bool is_signal_frame(uint64_t svma) const;
  size_t row_count() const;
  size_t memory_bytes() const;
  // What could not be used of the CFI, by stable name.
  void report(Diagnostics& diagnostics) const;

  ~ModuleTable();
  struct Impl;
  const Impl& impl() const { return *impl_; }
  static std::shared_ptr<const ModuleTable> adopt(std::unique_ptr<Impl> impl);  // for TableCache and tests

 private:
  explicit ModuleTable(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// In memory by what the caller identifies the file with, on disk by build-id and a hash of the CFI bytes (directory of
// the effective user, mode 0700, contents checked on load). A directory of another user, or one that others may write,
// is never used. Files without build-id stay in memory. One thread.
class TableCache {
 public:
  // disk_directory empty: memory only.
  explicit TableCache(std::string disk_directory = default_directory());
  static std::string default_directory();  // $XDG_CACHE_HOME/cprof/unwind or ~/.cache/cprof/unwind

  // Compiles or loads. A failure is remembered, so it costs once.
  Result<std::shared_ptr<const ModuleTable>> get(object::ElfFile& file, object::ElfFile* debug_file);

  // What the disk did not do (a cache that cannot be used is no error) and what CFI was broken, of all get() calls.
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  using Outcome = Result<std::shared_ptr<const ModuleTable>>;
  Outcome load_or_compile(object::ElfFile& file, object::ElfFile* debug_file);
  bool open_directory();

  std::string directory_;
  Fd directory_fd_;
  bool directory_tried_ = false;
  std::unordered_map<std::string, Outcome> by_identity_;
  Diagnostics diagnostics_;
};

}  // namespace cprof::unwind
