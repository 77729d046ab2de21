// The directory that elfutils' debuginfod client keeps its files in, by the same rules: BUILDID/debuginfo and
// BUILDID/executable; an empty file without permissions means that no server had it, for a while. Nothing is ever removed
// here but such a mark that is too old: elfutils' own cleaning counts our files as its own. Called by DebuginfodClient.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "object/elf_file.h"

namespace cprof::symbolize {

enum class DebuginfodKind : uint8_t { kDebugInfo, kExecutable };
std::string_view name_of(DebuginfodKind kind);  // the last part of the address and of the path

class DebuginfodCache {
 public:
  // "", or one that cannot be written to: nothing is kept; files live in the temporary directory without a name.
  explicit DebuginfodCache(std::string directory) : directory_(std::move(directory)) {}

  // A file whose build-id is another one is not taken. nullptr: not there.
  std::shared_ptr<object::ElfFile> find(DebuginfodKind kind, const std::string& hex) const;
  bool is_known_absent(DebuginfodKind kind, const std::string& hex) const;
  void remember_absent(DebuginfodKind kind, const std::string& hex) const;

  // A file that is being filled; it goes away unless it is kept.
  class Incoming {
   public:
    Incoming(Fd fd, std::string path, std::string final_path);
    Incoming(Incoming&&) noexcept = default;
    Incoming& operator=(Incoming&&) = delete;
    ~Incoming();

    int fd() const { return fd_.get(); }
    const std::string& name() const { return final_path_; }
    Result<void> keep();  // under its name; without one there is nothing to do

   private:
    Fd fd_;
    std::string path_;  // "": it has no name, or was kept
    std::string final_path_;
  };
  Result<Incoming> create(DebuginfodKind kind, const std::string& hex) const;

 private:
  std::string path_of(DebuginfodKind kind, const std::string& hex) const;
  int64_t seconds_absent() const;

  std::string directory_;
};

// The build-id is right, the file is an ELF file; it is marked as foreign, so its contents are read in the sandbox.
Result<std::shared_ptr<object::ElfFile>> open_checked(int fd, const std::string& name, const std::string& hex);

}  // namespace cprof::symbolize
