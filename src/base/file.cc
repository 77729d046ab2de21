#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include <cstdio>
#include <cstring>

namespace cprof {
namespace {

constexpr size_t kBufferBytes = 256 * 1024;

}  // namespace

Result<Fd> open_read(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return fail_errno(path);
  return fd;
}

Result<std::vector<std::byte>> read_all(int fd, size_t max_bytes, const std::string& name_for_errors) {
  std::vector<std::byte> bytes;
  struct stat st;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
    if (static_cast<uint64_t>(st.st_size) > max_bytes)
      return fail(name_for_errors + ": larger than the limit of " + std::to_string(max_bytes) + " bytes", EFBIG);
    bytes.reserve(static_cast<size_t>(st.st_size) + 1);
  }
  size_t used = 0;
  for (;;) {
    if (bytes.size() == used) bytes.resize(std::max<size_t>({bytes.capacity(), used * 2, 64 * 1024}));
    ssize_t n = read(fd, bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(name_for_errors);
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (used > max_bytes)
      return fail(name_for_errors + ": larger than the limit of " + std::to_string(max_bytes) + " bytes", EFBIG);
  }
  bytes.resize(used);
  return bytes;
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  Fd fd = TRY(open_read(path));
  auto bytes = TRY(read_all(fd.get(), max_bytes, path));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<void> read_exactly_at(int fd, uint64_t offset, std::span<std::byte> into, const std::string& name_for_errors) {
  size_t done = 0;
  while (done < into.size()) {
    ssize_t n = pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(name_for_errors);
    if (n == 0) return fail(name_for_errors + ": ends at byte " + std::to_string(offset + done));
    done += static_cast<size_t>(n);
  }
  return {};
}

Result<void> write_fully(int fd, std::span<const std::byte> bytes, const std::string& name_for_errors) {
  while (!bytes.empty()) {
    ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(name_for_errors);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

std::string temporary_folder() {
  const char* given = getenv("TMPDIR");
  return given && *given ? given : "/tmp";
}

Result<TemporaryFile> TemporaryFile::create() {
  const std::string folder = temporary_folder();
  std::string path = folder + "/cprof-XXXXXX";
  Fd fd(mkostemp(path.data(), O_CLOEXEC));
  if (!fd) return fail_errno("a temporary file in " + folder);
  return TemporaryFile(std::move(fd), std::move(path));
}

TemporaryFile::~TemporaryFile() {
  if (fd_) unlink(path_.c_str());
}

Fd TemporaryFile::without_name() && {
  unlink(path_.c_str());
  return std::move(fd_);
}

Result<Fd> open_temporary() {
  if (Fd fd(open(temporary_folder().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); fd) return fd;
  return TRY(TemporaryFile::create()).without_name();  // a file system that has no unnamed files
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (path == "-") return onto(STDOUT_FILENO, "stdout");
  OutputFile out;
  out.path_ = path;
  out.buffer_.reserve(kBufferBytes);
  struct stat st;
  bool exists = stat(path.c_str(), &st) == 0;
  if (exists && S_ISDIR(st.st_mode)) return fail_errno(path, EISDIR);
  if (exists && !S_ISREG(st.st_mode)) {
    out.fd_ = Fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!out.fd_) return fail_errno(path);
    return out;
  }
  out.temporary_ = path + ".tmp." + std::to_string(getpid());
  out.fd_ = Fd(open(out.temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!out.fd_) {
    int error = errno;
    out.temporary_.clear();
    return fail_errno(path, error);
  }
  return out;
}

Result<OutputFile> OutputFile::onto(int fd, std::string name) {
  OutputFile out;
  out.path_ = std::move(name);
  out.buffer_.reserve(kBufferBytes);
  out.fd_ = Fd(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!out.fd_) return fail_errno(out.path_);
  return out;
}

Result<void> OutputFile::check(const std::string& path) {
  struct stat st;
  if (path == "-") return {};
  if (stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return fail_errno(path, EISDIR);
    if (!S_ISREG(st.st_mode)) return access(path.c_str(), W_OK) == 0 ? Result<void>() : fail_errno(path);
  }
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  if (access(folder.c_str(), W_OK | X_OK) != 0) return fail_errno(path);
  return {};
}

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(buffer_, other.buffer_);
  std::swap(bytes_written_, other.bytes_written_);
  return *this;
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<void> OutputFile::write(std::span<const std::byte> bytes) {
  bytes_written_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    TRY(flush());
    if (bytes.size() >= kBufferBytes) return write_fully(fd_.get(), bytes, path_);
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return {};
}

Result<void> OutputFile::write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

Result<void> OutputFile::flush() {
  TRY(write_fully(fd_.get(), buffer_, path_));
  buffer_.clear();
  return {};
}

Result<void> OutputFile::commit() {
  TRY(flush());
  if (temporary_.empty()) return {};
  if (close(fd_.release()) != 0) return fail_errno(path_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return fail_errno(path_);
  temporary_.clear();
  return {};
}

}  // namespace cprof
