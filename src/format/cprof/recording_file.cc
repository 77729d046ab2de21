#include "format/cprof/recording_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "format/gzip.h"
#include "format/input.h"
#include "store/database.h"

namespace cprof::format {
namespace {

constexpr size_t kCopyBytes = 256 * 1024;

Result<Fd> spool(Input input, const ReadOptions& options) {
  Fd file = TRY(open_temporary());
  InputStream stream = TRY(InputStream::open(std::move(input), options));
  std::vector<std::byte> piece(kCopyBytes);
  while (size_t count = TRY(stream.read(piece))) TRY(write_fully(file.get(), std::span(piece).first(count), "temporary file"));
  return file;
}

// SQLite's locks (os_unix of its source; file format section 1.3.2 names the page they lie in): a reader takes the pending
// byte for as long as it takes to lock the shared range.
constexpr off_t kPendingByte = 0x40000000, kSharedFirst = kPendingByte + 2, kSharedBytes = 510;

bool lock_range(int fd, short kind, off_t start, off_t bytes) {
  struct flock range = {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = start;
  range.l_len = bytes;
  return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

// False: a recording is being committed right now. A file system without locks has no one else who holds any.
bool lock_shared(int fd) {
  if (!lock_range(fd, F_RDLCK, kPendingByte, 1)) return errno != EAGAIN && errno != EACCES;
  const bool is_locked = lock_range(fd, F_RDLCK, kSharedFirst, kSharedBytes);
  lock_range(fd, F_UNLCK, kPendingByte, 1);
  return is_locked;
}

Result<void> wait_for_lock(int fd, const std::string& name) {
  using namespace std::chrono_literals;
  for (int tries = 0; tries < 500; ++tries) {
    if (lock_shared(fd)) return {};
    std::this_thread::sleep_for(10ms);
  }
  return fail(fmt::format("{}: another program has been writing it for 5 s", name));
}

// Beside the file, when it is the file of that name: what was there before a commit that never ended.
Fd open_journal(const Input& input) {
  constexpr std::array<unsigned char, 8> kJournalMagic = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  struct stat own, named;
  if (fstat(input.fd.get(), &own) != 0 || stat(input.name.c_str(), &named) != 0) return {};
  if (own.st_dev != named.st_dev || own.st_ino != named.st_ino) return {};
  Fd journal(open((input.name + "-journal").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat st;
  std::array<unsigned char, 8> magic = {};
  if (!journal || fstat(journal.get(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  if (pread(journal.get(), magic.data(), magic.size(), 0) != ssize_t{magic.size()} || magic != kJournalMagic) return {};
  return journal;
}

Result<void> copy(int from, const std::string& to) {
  Fd into(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!into) return fail_errno(to);
  std::vector<std::byte> piece(kCopyBytes);
  for (off_t at = 0;;) {
    const ssize_t count = pread(from, piece.data(), piece.size(), at);
    if (count < 0) return fail_errno(to);
    if (count == 0) return {};
    TRY(write_fully(into.get(), std::span(piece).first(static_cast<size_t>(count)), to));
    at += count;
  }
}

// SQLite goes back to the last commit as soon as it reads.
Result<Fd> roll_back(const std::string& path) {
  {
    store::Database database = TRY(store::Database::open_path(path));
    store::Statement statement = TRY(database.prepare("SELECT count(*) FROM sqlite_schema"));
    TRY(statement.run());
  }
  return open_read(path);
}

Result<Fd> recovered(int file, int journal) {
  std::string folder = temporary_folder() + "/cprof-XXXXXX";
  if (!mkdtemp(folder.data())) return fail_errno(folder);
  const std::string path = folder + "/recording";
  auto make = [&]() -> Result<Fd> {
    TRY(copy(file, path));
    TRY(copy(journal, path + "-journal"));
    return roll_back(path);
  };
  auto fd = make();
  unlink((path + "-journal").c_str());
  unlink(path.c_str());
  rmdir(folder.c_str());
  return fd;
}

}  // namespace

Result<Fd> open_recording(Input input, const ReadOptions& options) {
  if (!input.seekable || is_gzip(input.head)) return spool(std::move(input), options);
  struct stat st;
  if (fstat(input.fd.get(), &st) != 0) return fail_errno(input.name);
  if (static_cast<uint64_t>(st.st_size) > options.max_input_bytes)
    return fail(fmt::format("{}: larger than {} bytes; --max-input raises the limit", input.name, options.max_input_bytes));
  TRY(wait_for_lock(input.fd.get(), input.name));
  if (Fd journal = open_journal(input)) {
    auto fd = recovered(input.fd.get(), journal.get());
    if (!fd) return std::unexpected(in_context(input.name, fd.error()));
    return fd;
  }
  return std::move(input.fd);
}

}  // namespace cprof::format
