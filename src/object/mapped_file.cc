// The file behind a mapping, or nothing: never another file that happens to have the same path.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "object/elf_file.h"
#include "object/process_files.h"
#include "object/rooted_open.h"

namespace cprof::object {
namespace {

bool is_known(const FileIdentity& identity) { return identity.inode != 0 || !identity.build_id.empty(); }

bool same_inode(const FileIdentity& identity, uint32_t device_major, uint32_t device_minor, uint64_t inode) {
  return identity.inode == inode && identity.major == device_major && identity.minor == device_minor;
}

bool has_build_id(int fd, std::span<const std::byte> build_id) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy) return false;
  auto file = ElfFile::open(std::move(copy), "candidate");
  return file && std::ranges::equal((*file)->build_id(), build_id);
}

// Maps a page of the file and looks at what the kernel calls it.
bool maps_as(int fd, const FileIdentity& identity) {
  size_t length = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, 0);
  if (page == MAP_FAILED) return false;
  bool same = false;
  if (auto entries = read_maps(getpid())) {
    uint64_t address = reinterpret_cast<uint64_t>(page);
    for (const MapsEntry& entry : *entries) {
      bool ours = entry.start <= address && address < entry.end;
      same |= ours && same_inode(identity, entry.major, entry.minor, entry.inode);
    }
  }
  munmap(page, length);
  return same;
}

Result<Fd> open_root(int32_t pid) {
  std::string path = fmt::format("/proc/{}/root", pid);
  Fd root(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail_errno(path);
  return root;
}

Result<Fd> open_map_file(int32_t pid, uint64_t start, uint64_t end) {
  std::string path = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, start, end);
  Fd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return fail_errno(path);
  return reopen_regular(fd, path);
}

bool is_gone(int32_t pid) { return pid <= 0 || access(fmt::format("/proc/{}", pid).c_str(), F_OK) != 0; }

// Takes the candidates one by one and remembers why each was not the file.
class Search {
 public:
  explicit Search(const FileIdentity& identity) : identity_(identity) {}

  bool accept(Result<Fd> candidate, const char* where) {
    if (candidate && (!is_known(identity_) || matches_identity(candidate->get(), identity_))) {
      found_ = std::move(*candidate);
      return true;
    }
    tried_ += tried_.empty() ? "" : "; ";
    tried_ += candidate ? fmt::format("{}: another file", where) : candidate.error().message;
    if (!candidate) code_ = candidate.error().code;
    return false;
  }
  void note(std::string_view text) { tried_ += fmt::format("{}{}", tried_.empty() ? "" : "; ", text); }
  Fd take() { return std::move(found_); }
  Error error(const std::string& path) const { return {fmt::format("{}: not found as mapped ({})", path, tried_), code_}; }

 private:
  const FileIdentity& identity_;
  Fd found_;
  std::string tried_;
  int code_ = ENOENT;
};

}  // namespace

bool matches_identity(int fd, const FileIdentity& identity) {
  if (!identity.build_id.empty()) return has_build_id(fd, identity.build_id);
  if (identity.inode == 0) return false;
  struct stat st;
  if (fstat(fd, &st) != 0) return false;
  return same_inode(identity, major(st.st_dev), minor(st.st_dev), st.st_ino) || maps_as(fd, identity);
}

Result<Fd> open_in_root(int32_t pid, const std::string& path) {
  Fd root = TRY(open_root(pid));
  auto file = open_below_root(root.get(), path);
  if (!file) return std::unexpected(in_context(fmt::format("in the root of process {}", pid), std::move(file.error())));
  return file;
}

Result<Fd> open_in_directory_root(const std::string& root_path, const std::string& path) {
  Fd root(open(root_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return fail_errno(root_path);
  return open_below_root(root.get(), path);
}

Result<Fd> open_mapped_file(int32_t pid, uint64_t start, uint64_t end, const std::string& path,
                            const FileIdentity& identity) {
  Search search(identity);
  if (!path.starts_with('/')) return fail(path + ": not a file's mapping", ENOENT);
  if (search.accept(open_map_file(pid, start, end), "map_files")) return search.take();
  if (search.accept(open_in_root(pid, path), "the process's root")) return search.take();
  // The process may be gone, a zombie or another user's; a file that is known to be the same needs no root.
  if (is_known(identity) && search.accept(open_in_directory_root("/", path), "the path itself")) return search.take();
  if (!is_known(identity) && is_gone(pid))
    search.note("the process is gone and nothing tells whether the file of that path is the one it mapped");
  return std::unexpected(search.error(path));
}

}  // namespace cprof::object
