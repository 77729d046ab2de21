#include "object/rooted_open.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <climits>
#include <string_view>
#include <vector>

namespace cprof::object {
namespace {

constexpr int kMaxLinks = 40;           // as the kernel's own limit
constexpr long kProcMagic = 0x9fa0;     // PROC_SUPER_MAGIC: the links in there are magic ones

// The path's components still to walk, last first.
std::vector<std::string> components_backwards(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    size_t slash = path.rfind('/');
    std::string_view part = slash == path.npos ? path : path.substr(slash + 1);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path = slash == path.npos ? std::string_view() : path.substr(0, slash);
  }
  return parts;
}

Result<std::string> read_link(const Fd& link, const std::string& name) {
  struct statfs fs;
  if (fstatfs(link.get(), &fs) != 0) return fail_errno(name);
  if (fs.f_type == kProcMagic) return fail_errno(name, ELOOP);
  std::string target(PATH_MAX, '\0');
  ssize_t length = readlinkat(link.get(), "", target.data(), target.size());
  if (length < 0) return fail_errno(name);
  target.resize(static_cast<size_t>(length));
  return target;
}

class Walk {
 public:
  Walk(int root_fd, const std::string& path) : root_(root_fd), path_(path), left_(components_backwards(path)) {}

  Result<Fd> run() {
    while (!left_.empty()) {
      std::string part = std::move(left_.back());
      left_.pop_back();
      if (part == "..") {
        if (!stack_.empty()) stack_.pop_back();
        continue;
      }
      TRY(enter(part));
    }
    if (stack_.empty()) return fail_errno(path_, EISDIR);
    return std::move(stack_.back());
  }

 private:
  int here() const { return stack_.empty() ? root_ : stack_.back().get(); }

  Result<void> enter(const std::string& part) {
    Fd next(openat(here(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat st;
    if (!next || fstat(next.get(), &st) != 0) return fail_errno(path_);
    if (!S_ISLNK(st.st_mode)) {
      stack_.push_back(std::move(next));
      return {};
    }
    if (++links_ > kMaxLinks) return fail_errno(path_, ELOOP);
    std::string target = TRY(read_link(next, path_));
    if (target.starts_with('/')) stack_.clear();
    for (std::string& piece : components_backwards(target)) pending_.push_back(std::move(piece));
    left_.insert(left_.end(), std::make_move_iterator(pending_.begin()), std::make_move_iterator(pending_.end()));
    pending_.clear();
    return {};
  }

  int root_;
  const std::string& path_;
  std::vector<std::string> left_, pending_;
  std::vector<Fd> stack_;  // the directories from below the root to here
  int links_ = 0;
};

}  // namespace

Result<Fd> resolve_by_openat2(int root_fd, const std::string& path) {
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Fd fd(static_cast<int>(syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how)));
  if (!fd) return fail_errno(path);
  return fd;
}

Result<Fd> resolve_by_walking(int root_fd, const std::string& path) {
  if (path.size() >= PATH_MAX) return fail_errno(path, ENAMETOOLONG);
  return Walk(root_fd, path).run();
}

Result<Fd> reopen_regular(const Fd& path_fd, const std::string& name) {
  struct stat st;
  if (fstat(path_fd.get(), &st) != 0) return fail_errno(name);
  if (!S_ISREG(st.st_mode)) return fail(name + ": not a regular file", EINVAL);
  std::string link = "/proc/self/fd/" + std::to_string(path_fd.get());
  Fd fd(open(link.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return fail_errno(name);
  return fd;
}

Result<Fd> open_below_root(int root_fd, const std::string& path) {
  auto found = resolve_by_openat2(root_fd, path);
  // Sandboxes of before openat2 answer EPERM for a call that they do not know.
  bool unknown_call = !found && (found.error().code == ENOSYS || found.error().code == EPERM);
  if (unknown_call) found = resolve_by_walking(root_fd, path);
  if (!found) return std::unexpected(std::move(found.error()));
  return reopen_regular(*found, path);
}

}  // namespace cprof::object
