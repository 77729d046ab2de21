// Opens inputs and reads their bytes, unpacked. Used by every reader and by load. One thread. Reads with read(2), never
// mmap: a file that shrinks is an error, not a signal.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "format/format.h"
#include "format/gzip.h"

namespace cprof::format {

// path "-" is stdin. Only regular files, pipes, sockets and devices; a directory is refused.
Result<Input> open_input(const std::string& path);

// An input that is already in memory, for tests and uploads: an unnamed temporary file.
Result<Input> memory_input(std::span<const std::byte> bytes, std::string name);

// The bytes of an input from its start. gzip, recognised by its first bytes, is unpacked on the way within the limits
// of ReadOptions. Every error begins with the input's name and tells the byte where it was found.
class InputStream {
 public:
  static Result<InputStream> open(Input input, const ReadOptions& options);

  // Fills `into` unless the input ends: a short count is the end.
  Result<size_t> read(std::span<std::byte> into);
  const std::string& name() const { return input_.name; }
  // How many bytes there will be, where that is known before: not of what is packed or comes through a pipe.
  std::optional<uint64_t> size() const;

 private:
  InputStream() = default;
  Result<size_t> read_packed(std::span<std::byte> into);
  Result<size_t> read_unpacked(std::span<std::byte> into);
  Result<void> refill();
  Result<void> check_limits(uint64_t unpacked_bytes) const;

  Input input_;
  ReadOptions options_;
  size_t head_used_ = 0;
  uint64_t packed_bytes_ = 0, unpacked_bytes_ = 0;
  std::optional<Inflater> inflater_;
  std::unique_ptr<std::byte[]> packed_;
  std::span<const std::byte> pending_;  // of packed_
  bool between_members_ = false, ended_ = false;
};

struct Bytes {
  std::unique_ptr<std::byte[]> data;
  size_t size = 0;
  std::span<const std::byte> span() const { return {data.get(), size}; }
};

// All of it at once, for formats that refer forward; faster than the stream where the gzip trailer tells the size.
Result<Bytes> read_unpacked(Input input, const ReadOptions& options);

}  // namespace cprof::format
