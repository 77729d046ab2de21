// /proc and files as a target sees them. Every path from a target is opened inside its own root, without following links
// out of it, regular files only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cprof::object {

// One line of /proc/PID/maps.
struct MapsEntry {
  uint64_t start = 0, end = 0, file_offset = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  uint32_t major = 0, minor = 0;
  uint64_t inode = 0;
  std::string path;  // "" anonymous, "[vdso]", "/lib/x (deleted)" with the mark removed and deleted set
  bool deleted = false;
};

// Calls on_entry for each line; malformed lines are skipped and counted.
size_t parse_maps(std::string_view text, const std::function<void(const MapsEntry&)>& on_entry);
Result<std::vector<MapsEntry>> read_maps(int32_t pid);

struct ProcessStatus {
  int32_t pid = 0, parent_pid = 0, pid_in_namespace = 0;  // innermost namespace's number, for perf-PID.map
  uint64_t start_time_ns = 0;                              // since boot; tells a reused pid apart
  std::string comm;
};
Result<ProcessStatus> read_status(int32_t pid, int32_t tid);
Result<std::vector<int32_t>> list_processes();
Result<std::vector<int32_t>> list_threads(int32_t pid);

// What a mapping must be for a file to count as the same file.
struct FileIdentity {
  uint32_t major = 0, minor = 0;
  uint64_t inode = 0;                    // 0: unknown
  std::vector<std::byte> build_id;       // empty: unknown
};

// Opens the file behind a mapping: /proc/PID/map_files/START-END, then /proc/PID/root + path, then (process gone) the
// path itself. Each candidate is accepted only when it matches identity (device and inode, or build-id); the error says
// what was tried.
Result<Fd> open_mapped_file(int32_t pid, uint64_t start, uint64_t end, const std::string& path, const FileIdentity& identity);

// Opens path under the target's root (openat2 RESOLVE_IN_ROOT | NO_MAGICLINKS), regular files only.
Result<Fd> open_in_root(int32_t pid, const std::string& path);

// The vdso image of this machine, from our own memory.
Result<std::vector<std::byte>> read_own_vdso();

// process_vm_readv of up to into.size() bytes; gives the count read.
Result<size_t> read_process_memory(int32_t pid, uint64_t address, std::span<std::byte> into);

}  // namespace cprof::object
