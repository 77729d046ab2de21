#include "symbolize/debuginfod/debuginfod_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/file.h"

namespace cprof::symbolize {
namespace {

constexpr int64_t kSecondsAbsent = 600;  // elfutils' default for what its file cache_miss_s says

Result<void> make_private_directories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno(part);
    if (slash == path.npos) return {};
  }
}

}  // namespace

std::string_view name_of(DebuginfodKind kind) { return kind == DebuginfodKind::kDebugInfo ? "debuginfo" : "executable"; }

Result<std::shared_ptr<object::ElfFile>> open_checked(int fd, const std::string& name, const std::string& hex) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_errno(name);
  auto file = TRY(object::ElfFile::open(std::move(copy), name));
  file->mark_foreign();
  if (object::to_hex(file->build_id()) != hex) return fail(fmt::format("{}: its build-id is not {}", name, hex));
  return file;
}

std::string DebuginfodCache::path_of(DebuginfodKind kind, const std::string& hex) const {
  return fmt::format("{}/{}/{}", directory_, hex, name_of(kind));
}

std::shared_ptr<object::ElfFile> DebuginfodCache::find(DebuginfodKind kind, const std::string& hex) const {
  if (directory_.empty()) return nullptr;
  std::string path = path_of(kind, hex);
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return nullptr;
  auto file = open_checked(fd.get(), path, hex);
  return file ? *file : nullptr;
}

int64_t DebuginfodCache::seconds_absent() const {
  auto text = read_text_file(directory_ + "/cache_miss_s", 64);
  return text && !text->empty() ? strtoll(text->c_str(), nullptr, 10) : kSecondsAbsent;
}

bool DebuginfodCache::is_known_absent(DebuginfodKind kind, const std::string& hex) const {
  struct stat status;
  if (directory_.empty() || lstat(path_of(kind, hex).c_str(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_size != 0) return false;
  if (time(nullptr) - status.st_mtime <= seconds_absent()) return true;
  unlink(path_of(kind, hex).c_str());
  return false;
}

void DebuginfodCache::remember_absent(DebuginfodKind kind, const std::string& hex) const {
  std::string path = path_of(kind, hex);
  if (directory_.empty() || !make_private_directories(directory_ + "/" + hex)) return;
  Fd made(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0));
}

Result<DebuginfodCache::Incoming> DebuginfodCache::create(DebuginfodKind kind, const std::string& hex) const {
  std::string path = path_of(kind, hex), temporary = path + ".XXXXXX";
  bool has_place = !directory_.empty() && make_private_directories(directory_ + "/" + hex);
  Fd fd(has_place ? mkostemp(temporary.data(), O_CLOEXEC) : -1);
  if (fd) return Incoming(std::move(fd), std::move(temporary), std::move(path));
  return Incoming(TRY(open_temporary()), "", fmt::format("{} {}", name_of(kind), hex));
}

DebuginfodCache::Incoming::Incoming(Fd fd, std::string path, std::string final_path)
    : fd_(std::move(fd)), path_(std::move(path)), final_path_(std::move(final_path)) {}

DebuginfodCache::Incoming::~Incoming() {
  if (fd_ && !path_.empty()) unlink(path_.c_str());
}

Result<void> DebuginfodCache::Incoming::keep() {
  if (path_.empty()) return {};
  if (fchmod(fd_.get(), 0400) != 0 || rename(path_.c_str(), final_path_.c_str()) != 0) return fail_errno(final_path_);
  path_.clear();
  return {};
}

}  // namespace cprof::symbolize
