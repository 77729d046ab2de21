// Where the files behind mappings come from when no process can be asked any more: their own path, a copy of the root they
// lay in, directories by build-id, and debuginfod servers when the user asked for those. Called by Modules and
// ProfileNamer, on their thread. A file whose build-id is not the recorded one is never given.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/diagnostics.h"
#include "object/debug_files.h"
#include "object/elf_file.h"
#include "symbolize/debuginfod/debuginfod_client.h"

namespace cprof::pipeline {

// What the user gave.
struct NameSources {
  object::FilePlaces places;
  std::shared_ptr<symbolize::DebuginfodClient> debuginfod;  // null: no server is asked for anything
};

struct WantedFile {
  const std::string& path;
  std::span<const std::byte> build_id;  // empty: not known
  bool trust_path = false;              // without a build-id, what lies there now is taken for the file
  bool may_fetch = false;
};

class FileSources {
 public:
  explicit FileSources(const NameSources& given) : given_(given), finder_(given.places) {}

  // The error says what the last place that could have had it lacked.
  Result<std::shared_ptr<object::ElfFile>> open(const WantedFile& wanted, Diagnostics& diagnostics) const;
  // pid: its root is searched first. Never asks a server.
  std::shared_ptr<object::ElfFile> debug_file(object::ElfFile& file, const std::string& path, std::optional<int32_t> pid,
                                              Diagnostics& diagnostics) {
    return finder_.find(file, path, pid, diagnostics);
  }
  // For a file whose debug info is not here.
  std::shared_ptr<object::ElfFile> fetch_debug_file(std::span<const std::byte> build_id, std::string_view path,
                                                    Diagnostics& diagnostics) const;

 private:
  NameSources given_;
  object::DebugFileFinder finder_;
};

// This kernel's, when it has that build-id; without one, when the kernel is the same.
Result<std::shared_ptr<object::ElfFile>> open_own_vdso(std::span<const std::byte> build_id, bool same_kernel);

bool has_debug_info(const object::ElfFile& file);

// Lower-case hex; empty for what is none.
std::vector<std::byte> build_id_from_hex(std::string_view hex);

}  // namespace cprof::pipeline
