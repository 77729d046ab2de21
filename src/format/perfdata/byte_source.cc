#include "format/perfdata/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/file.h"

namespace cprof::format::perfdata {
namespace {

// Enough of a pipe to be read again when its first bytes turn out to be the file form's.
constexpr size_t kKeptHeadBytes = 64;
constexpr uint64_t kFarthest = INT64_MAX / 2;
constexpr size_t kSpoolBytes = 256 * 1024;

}  // namespace

Result<size_t> ByteSource::read_some(std::span<std::byte> into) {
  if (!input_.seekable && position_ < input_.head.size()) {
    size_t n = std::min<size_t>(into.size(), input_.head.size() - static_cast<size_t>(position_));
    memcpy(into.data(), input_.head.data() + position_, n);
    return n;
  }
  for (;;) {
    ssize_t n = input_.seekable ? pread(input_.fd.get(), into.data(), into.size(), static_cast<off_t>(position_))
                                : ::read(input_.fd.get(), into.data(), into.size());
    if (n > 0 && !input_.seekable && input_.head.size() < kKeptHeadBytes)
      input_.head.insert(input_.head.end(), into.begin(), into.begin() + n);
    if (n >= 0) return static_cast<size_t>(n);
    if (errno != EINTR) return fail_errno(input_.name);
  }
}

Result<size_t> ByteSource::read(std::span<std::byte> into) {
  size_t done = 0;
  while (done < into.size()) {
    size_t n = TRY(read_some(into.subspan(done)));
    if (n == 0) break;
    position_ += n;
    done += n;
  }
  return done;
}

Result<void> ByteSource::skip(uint64_t bytes) {
  if (input_.seekable) {
    position_ = bytes > kFarthest - std::min(position_, kFarthest) ? kFarthest : position_ + bytes;
    return {};
  }
  std::vector<std::byte> buffer(static_cast<size_t>(std::min<uint64_t>(bytes, kSpoolBytes)));
  while (bytes > 0) {
    size_t n = TRY(read(std::span(buffer).first(static_cast<size_t>(std::min<uint64_t>(bytes, buffer.size())))));
    if (n == 0) break;
    bytes -= n;
  }
  return {};
}

Result<void> ByteSource::make_seekable() {
  if (!input_.seekable) TRY(spool());
  struct stat st {};
  if (fstat(input_.fd.get(), &st) != 0) return fail_errno(input_.name);
  size_ = static_cast<uint64_t>(st.st_size);
  return {};
}

Result<void> ByteSource::spool() {
  Fd file = TRY(open_temporary());
  std::vector<std::byte> buffer(kSpoolBytes);
  uint64_t at = position_;
  position_ = 0;
  // What of the head was read already is still there; nothing beyond it was taken before the form was known.
  CPROF_CHECK(at <= input_.head.size());
  uint64_t total = 0;
  for (;;) {
    size_t n = TRY(read(buffer));
    if (n == 0) break;
    total += n;
    if (total > options_.max_input_bytes)
      return fail(input_.name + ": larger than the limit of " + std::to_string(options_.max_input_bytes) + " bytes; see --max-input", EFBIG);
    TRY(write_fully(file.get(), std::span(buffer).first(n), "a temporary file"));
  }
  input_.fd = std::move(file);
  input_.seekable = true;
  position_ = at;
  return {};
}

Result<void> ByteSource::read_at(uint64_t offset, std::span<std::byte> into) {
  return read_exactly_at(input_.fd.get(), offset, into, input_.name);
}

}  // namespace cprof::format::perfdata
