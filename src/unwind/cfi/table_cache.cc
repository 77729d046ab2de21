#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include <fmt/format.h>

#include "base/file.h"
#include "base/own_folder.h"
#include "unwind/cfi/content_hash.h"
#include "unwind/cfi/module_table.h"
#include "unwind/cfi/table_file.h"

namespace cprof::unwind {
namespace {

constexpr size_t kFileLimit = size_t{1} << 30;

std::string identity_of(object::ElfFile& file) {
  if (file.fd() < 0) {
    ContentHash hash;
    hash.add(file.memory());
    return fmt::format("memory:{:016x}", hash.value());
  }
  const struct stat& st = file.stat();
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", st.st_dev, st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                     st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
}

// Only what its owner alone can have written is read back.
bool is_private_to_us(int fd, mode_t type) {
  struct stat st;
  return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

bool write_beside(int directory, const std::string& name, std::span<const std::byte> bytes) {
  std::string temporary = fmt::format("{}.tmp.{}", name, getpid());
  unlinkat(directory, temporary.c_str(), 0);
  Fd fd(openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return false;
  bool is_written = write_fully(fd.get(), bytes, temporary).has_value() &&
                    renameat(directory, temporary.c_str(), directory, name.c_str()) == 0;
  if (!is_written) unlinkat(directory, temporary.c_str(), 0);
  return is_written;
}

}  // namespace

TableCache::TableCache(std::string disk_directory) : directory_(std::move(disk_directory)) {}

std::string TableCache::default_directory() {
  for (const auto& [variable, below] : {std::pair("XDG_CACHE_HOME", "/cprof/unwind"), std::pair("HOME", "/.cache/cprof/unwind")})
    if (const char* folder = getenv(variable); folder && is_own_folder(folder)) return std::string(folder) + below;
  return geteuid() == 0 ? "/root/.cache/cprof/unwind" : "";
}

bool TableCache::open_directory() {
  if (directory_tried_) return static_cast<bool>(directory_fd_);
  directory_tried_ = true;
  if (directory_.empty()) return false;
  make_folders(directory_);
  directory_fd_ = Fd(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (directory_fd_ && is_private_to_us(directory_fd_.get(), S_IFDIR)) return true;
  directory_fd_.reset();
  diagnostics_.add("unwind_cache_directory_refused", Severity::kInfo,
                   "unwind tables are not kept on disk: the directory cannot be used, is another user's, or others may write it",
                   1, directory_);
  return false;
}

TableCache::Outcome TableCache::get(object::ElfFile& file, object::ElfFile* debug_file) {
  std::string identity = identity_of(file);
  if (debug_file) identity += "+" + identity_of(*debug_file);
  auto [it, is_new] = by_identity_.try_emplace(identity, fail("unwind table is being made"));
  if (is_new) it->second = load_or_compile(file, debug_file);
  return it->second;
}

TableCache::Outcome TableCache::load_or_compile(object::ElfFile& file, object::ElfFile* debug_file) {
  ModuleInput input = TRY(read_module_input(file, debug_file));
  file.drop_cached_data();  // the CFI has been copied
  bool uses_disk = !file.build_id().empty() && open_directory();
  uint64_t hash = uses_disk ? hash_of_input(input) : 0;
  std::string name = uses_disk ? fmt::format("{}-{:016x}.rows", object::to_hex(file.build_id()), hash) : "";
  std::unique_ptr<ModuleTable::Impl> impl;
  if (uses_disk) {
    Fd fd(openat(directory_fd_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd && is_private_to_us(fd.get(), S_IFREG)) {
      auto bytes = read_all(fd.get(), kFileLimit, name);
      if (bytes) impl = read_table(*bytes, hash, input);
      if (!impl)
        diagnostics_.add("unwind_cache_file_refused", Severity::kInfo,
                         "a cached unwind table was damaged or of another version and has been made anew", 1, name);
    }
  }
  bool is_loaded = impl != nullptr;
  if (!impl) impl = compile_module(std::move(input));
  if (uses_disk && !is_loaded && !write_beside(directory_fd_.get(), name, write_table(*impl, hash)))
    diagnostics_.add("unwind_cache_write_failed", Severity::kInfo, "an unwind table could not be kept on disk", 1, name);
  auto table = ModuleTable::adopt(std::move(impl));
  table->report(diagnostics_);
  return table;
}

}  // namespace cprof::unwind
