#include "format/input.h"

#include <fmt/format.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace cprof::format {
namespace {

constexpr size_t kHeadBytes = 64 * 1024;
constexpr size_t kPackedBytes = 256 * 1024;
constexpr uint64_t kRatioFreeBytes = uint64_t{16} << 20;  // below this no ratio is suspicious
constexpr size_t kGzipOverhead = 18;                      // header and trailer of a member

Result<size_t> read_some(int fd, std::span<std::byte> into, const std::string& name) {
  size_t used = 0;
  while (used < into.size()) {
    ssize_t n = ::read(fd, into.data() + used, into.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(name);
    if (n == 0) break;
    used += static_cast<size_t>(n);
  }
  return used;
}

Error too_large(const std::string& name, const ReadOptions& options) {
  return {fmt::format("{}: larger than {} bytes unpacked; --max-input raises the limit", name, options.max_input_bytes),
          EFBIG};
}

Error too_dense(const std::string& name, const ReadOptions& options) {
  return {fmt::format("{}: unpacks to more than {} times its size; --max-input lifts the limit", name,
                      options.max_ratio), EFBIG};
}

Result<Bytes> grow(Bytes bytes, size_t capacity) {
  Bytes larger{std::make_unique_for_overwrite<std::byte[]>(capacity), bytes.size};
  memcpy(larger.data.get(), bytes.data.get(), bytes.size);
  return larger;
}

Result<Bytes> read_stream(InputStream& stream, size_t first_capacity) {
  size_t capacity = std::max<size_t>(first_capacity, 64 * 1024);
  Bytes bytes{std::make_unique_for_overwrite<std::byte[]>(capacity), 0};
  for (;;) {
    size_t n = TRY(stream.read({bytes.data.get() + bytes.size, capacity - bytes.size}));
    bytes.size += n;
    if (bytes.size < capacity) return bytes;
    capacity += capacity / 2;
    bytes = TRY(grow(std::move(bytes), capacity));
  }
}

// A single gzip member whose trailer tells a plausible size: unpacked at once. Anything else is left to the stream,
// which also finds the words for what is wrong.
std::optional<Bytes> unpack_at_once(std::span<const std::byte> packed, const ReadOptions& options) {
  if (packed.size() < kGzipOverhead) return std::nullopt;
  uint32_t size;
  memcpy(&size, packed.data() + packed.size() - sizeof size, sizeof size);
  if (size > options.max_input_bytes) return std::nullopt;
  if (size > kRatioFreeBytes && size / options.max_ratio > packed.size()) return std::nullopt;
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> unpacker(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!unpacker) return std::nullopt;
  Bytes bytes{std::make_unique_for_overwrite<std::byte[]>(std::max<size_t>(size, 1)), size};
  size_t consumed = 0, produced = 0;
  if (libdeflate_gzip_decompress_ex(unpacker.get(), packed.data(), packed.size(), bytes.data.get(), bytes.size,
                                    &consumed, &produced) != LIBDEFLATE_SUCCESS)
    return std::nullopt;
  if (consumed != packed.size() || produced != size) return std::nullopt;
  return bytes;
}

}  // namespace

Result<Input> open_input(const std::string& path) {
  Input input;
  input.name = path == "-" ? "stdin" : path;
  if (path == "-") {
    input.fd = Fd(dup(STDIN_FILENO));
    if (!input.fd) return fail_errno("stdin");
  } else {
    input.fd = TRY(open_read(path));
  }
  struct stat st;
  if (fstat(input.fd.get(), &st) != 0) return fail_errno(input.name);
  if (S_ISDIR(st.st_mode)) return fail_errno(input.name, EISDIR);
  input.seekable = S_ISREG(st.st_mode) && lseek(input.fd.get(), 0, SEEK_SET) == 0;
  input.head.resize(kHeadBytes);
  input.head.resize(TRY(read_some(input.fd.get(), input.head, input.name)));
  if (input.seekable && lseek(input.fd.get(), 0, SEEK_SET) != 0) return fail_errno(input.name);
  return input;
}

Result<Input> memory_input(std::span<const std::byte> bytes, std::string name) {
  Input input;
  input.fd = Fd(memfd_create("cprof-input", MFD_CLOEXEC));
  if (!input.fd) return fail_errno(name);
  TRY(write_fully(input.fd.get(), bytes, name));
  if (lseek(input.fd.get(), 0, SEEK_SET) != 0) return fail_errno(name);
  auto head = bytes.first(std::min(bytes.size(), kHeadBytes));
  input.head.assign(head.begin(), head.end());
  input.name = std::move(name);
  input.seekable = true;
  return input;
}

Result<InputStream> InputStream::open(Input input, const ReadOptions& options) {
  InputStream stream;
  stream.input_ = std::move(input);
  stream.options_ = options;
  if (stream.input_.seekable) {
    if (lseek(stream.input_.fd.get(), 0, SEEK_SET) != 0) return fail_errno(stream.input_.name);
    stream.head_used_ = stream.input_.head.size();
  }
  if (!is_gzip(stream.input_.head)) return stream;
  stream.inflater_ = TRY(Inflater::create());
  stream.packed_ = std::make_unique_for_overwrite<std::byte[]>(kPackedBytes);
  return stream;
}

std::optional<uint64_t> InputStream::size() const {
  struct stat st;
  if (inflater_ || !input_.seekable || fstat(input_.fd.get(), &st) != 0) return std::nullopt;
  return static_cast<uint64_t>(st.st_size);
}

Result<size_t> InputStream::read(std::span<std::byte> into) {
  size_t n = TRY(inflater_ ? read_unpacked(into) : read_packed(into));
  unpacked_bytes_ += n;
  TRY(check_limits(unpacked_bytes_));
  return n;
}

Result<size_t> InputStream::read_packed(std::span<std::byte> into) {
  size_t from_head = std::min(into.size(), input_.head.size() - head_used_);
  if (from_head) memcpy(into.data(), input_.head.data() + head_used_, from_head);
  head_used_ += from_head;
  size_t n = from_head + TRY(read_some(input_.fd.get(), into.subspan(from_head), input_.name));
  packed_bytes_ += n;
  return n;
}

Result<void> InputStream::refill() {
  size_t n = TRY(read_packed({packed_.get(), kPackedBytes}));
  pending_ = {packed_.get(), n};
  ended_ = n == 0;
  return {};
}

Result<size_t> InputStream::read_unpacked(std::span<std::byte> into) {
  size_t produced = 0;
  while (produced < into.size()) {
    if (pending_.empty() && !ended_) TRY(refill());
    if (pending_.empty() && between_members_) break;
    uint64_t at = packed_bytes_ - pending_.size();
    if (pending_.empty()) return fail(fmt::format("{}: gzip data ends early, at byte {}", input_.name, at));
    auto step = inflater_->step(pending_, into.subspan(produced));
    if (!step) return fail(fmt::format("{}: damaged gzip data near byte {}: {}", input_.name, at, step.error().message));
    pending_ = pending_.subspan(step->consumed);
    produced += step->produced;
    between_members_ = step->member_ended;
    if (!step->consumed && !step->produced && !step->member_ended && !pending_.empty())
      return fail(fmt::format("{}: damaged gzip data near byte {}", input_.name, at));
    TRY(check_limits(unpacked_bytes_ + produced));
  }
  return produced;
}

Result<void> InputStream::check_limits(uint64_t unpacked_bytes) const {
  if (unpacked_bytes > options_.max_input_bytes) return std::unexpected(too_large(input_.name, options_));
  if (inflater_ && unpacked_bytes > kRatioFreeBytes && unpacked_bytes / options_.max_ratio > packed_bytes_)
    return std::unexpected(too_dense(input_.name, options_));
  return {};
}

Result<Bytes> read_unpacked(Input input, const ReadOptions& options) {
  struct stat st;
  size_t size = 0;
  if (input.seekable && fstat(input.fd.get(), &st) == 0) size = static_cast<size_t>(st.st_size);
  if (size > options.max_input_bytes) return std::unexpected(too_large(input.name, options));
  if (size && is_gzip(input.head)) {
    Bytes packed{std::make_unique_for_overwrite<std::byte[]>(size), size};
    TRY(read_exactly_at(input.fd.get(), 0, {packed.data.get(), size}, input.name));
    if (auto bytes = unpack_at_once(packed.span(), options)) return std::move(*bytes);
  }
  InputStream stream = TRY(InputStream::open(std::move(input), options));
  return read_stream(stream, size + 1);
}

}  // namespace cprof::format
