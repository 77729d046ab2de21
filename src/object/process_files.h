// /proc and files as a target sees them. Every path from a target is opened inside its own root, without following links
// out of it, regular files only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
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

// Calls on_entry for each line (the entry is reused); gives the number of malformed lines, which are skipped.
size_t parse_maps(std::string_view text, const std::function<void(const MapsEntry&)>& on_entry);
Result<std::vector<MapsEntry>> read_maps(int32_t pid);

struct ProcessStatus {
  int32_t pid = 0, parent_pid = 0;
  int32_t pid_in_namespace = 0;  // the process's number in its innermost namespace, for perf-PID.map
  uint64_t start_time_ns = 0;    // of the thread, since boot, in clock ticks' precision; tells a reused pid apart
  std::string comm;              // of the thread; any bytes, at most 15
};
// tid == pid asks for the main thread.
Result<ProcessStatus> read_status(int32_t pid, int32_t tid);
Result<std::vector<int32_t>> list_processes();
Result<std::vector<int32_t>> list_threads(int32_t pid);

// What a mapping must be for a file to count as the same file.
struct FileIdentity {
  uint32_t major = 0, minor = 0;
  uint64_t inode = 0;                    // 0: unknown
  std::vector<std::byte> build_id;       // empty: unknown
};

// True when the open file is the one that identity names. A known build-id decides alone. Device and inode are compared
// as the kernel shows them in maps: on btrfs and overlayfs stat() shows other numbers, so the file is mapped to see.
bool matches_identity(int fd, const FileIdentity& identity);

// Opens the file behind a mapping: /proc/PID/map_files/START-END, then /proc/PID/root + path, then (identity known) the
// path itself. Each candidate is accepted only when it matches identity (device and inode, or build-id); when nothing of
// the identity is known, only the first two are, as they cannot be another root's file. The error says what was tried.
Result<Fd> open_mapped_file(int32_t pid, uint64_t start, uint64_t end, const std::string& path, const FileIdentity& identity);

// Opens path under the target's root, regular files only; links are followed inside that root.
Result<Fd> open_in_root(int32_t pid, const std::string& path);

// The same with any root (a directory).
Result<Fd> open_in_directory_root(const std::string& root, const std::string& path);

// The vdso image of this machine, from our own memory.
Result<std::vector<std::byte>> read_own_vdso();

// process_vm_readv of up to into.size() bytes; gives the count read, which is less where the memory ends.
Result<size_t> read_process_memory(int32_t pid, uint64_t address, std::span<std::byte> into);

}  // namespace cprof::object
