#include "store/fd_files.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace cprof::store {
namespace {

constexpr const char* kName = "cprof-fd";
constexpr int kSectorBytes = 4096;

struct FdFile {
  sqlite3_file base;
  int fd;
  bool is_read_only;
};

FdFile& of(sqlite3_file* file) { return *reinterpret_cast<FdFile*>(file); }

int close_file(sqlite3_file*) { return SQLITE_OK; }

int read_file(sqlite3_file* file, void* into, int count, sqlite3_int64 offset) {
  auto* at = static_cast<char*>(into);
  while (count > 0) {
    const ssize_t got = pread(of(file).fd, at, static_cast<size_t>(count), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SQLITE_IOERR_READ;
    if (got == 0) {
      memset(at, 0, static_cast<size_t>(count));  // SQLite asks for it
      return SQLITE_IOERR_SHORT_READ;
    }
    at += got;
    offset += got;
    count -= static_cast<int>(got);
  }
  return SQLITE_OK;
}

int write_file(sqlite3_file* file, const void* from, int count, sqlite3_int64 offset) {
  const auto* at = static_cast<const char*>(from);
  while (count > 0) {
    const ssize_t put = pwrite(of(file).fd, at, static_cast<size_t>(count), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    at += put;
    offset += put;
    count -= static_cast<int>(put);
  }
  return SQLITE_OK;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  return ftruncate(of(file).fd, size) == 0 ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  struct stat st;
  if (fstat(of(file).fd, &st) != 0) return SQLITE_IOERR_FSTAT;
  *size = st.st_size;
  return SQLITE_OK;
}

int do_nothing(sqlite3_file*, int) { return SQLITE_OK; }
int control_file(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_bytes(sqlite3_file*) { return kSectorBytes; }

int is_reserved(sqlite3_file*, int* result) {
  *result = 0;
  return SQLITE_OK;
}

int characteristics(sqlite3_file* file) { return of(file).is_read_only ? SQLITE_IOCAP_IMMUTABLE : 0; }

sqlite3_io_methods make_methods() {
  sqlite3_io_methods methods = {};
  methods.iVersion = 1;
  methods.xClose = close_file;
  methods.xRead = read_file;
  methods.xWrite = write_file;
  methods.xTruncate = truncate_file;
  methods.xSync = do_nothing;
  methods.xFileSize = size_of_file;
  methods.xLock = methods.xUnlock = do_nothing;
  methods.xCheckReservedLock = is_reserved;
  methods.xFileControl = control_file;
  methods.xSectorSize = sector_bytes;
  methods.xDeviceCharacteristics = characteristics;
  return methods;
}

const sqlite3_io_methods kMethods = make_methods();

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  if (!name || !(flags & SQLITE_OPEN_MAIN_DB)) return SQLITE_CANTOPEN;
  FdFile& opened = of(file);
  if (std::from_chars(name, name + strlen(name), opened.fd).ec != std::errc()) return SQLITE_CANTOPEN;
  opened.is_read_only = flags & SQLITE_OPEN_READONLY;
  opened.base.pMethods = &kMethods;
  if (out_flags) *out_flags = flags;
  return SQLITE_OK;
}

int delete_file(sqlite3_vfs*, const char*, int) { return SQLITE_IOERR_DELETE_NOENT; }

int exists(sqlite3_vfs*, const char*, int, int* result) {
  *result = 0;
  return SQLITE_OK;
}

int full_name(sqlite3_vfs*, const char* name, int size, char* into) {
  sqlite3_snprintf(size, into, "%s", name);
  return SQLITE_OK;
}

// Sleep, time and random numbers are those of the system's own.
bool register_once() {
  static sqlite3_vfs vfs = *sqlite3_vfs_find(nullptr);
  vfs.pNext = nullptr;
  vfs.zName = kName;
  vfs.szOsFile = sizeof(FdFile);
  vfs.xOpen = open_file;
  vfs.xDelete = delete_file;
  vfs.xAccess = exists;
  vfs.xFullPathname = full_name;
  return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

}  // namespace

const char* register_fd_files() {
  static const bool is_registered = sqlite3_initialize() == SQLITE_OK && register_once();
  return is_registered ? kName : nullptr;
}

}  // namespace cprof::store
