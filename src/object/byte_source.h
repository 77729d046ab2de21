// Where an ELF file's bytes come from: a regular file (pread, never mapped) or memory. Every read is checked against the
// size that the source had when it was opened. Private to object.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cprof::object {

class ByteSource {
 public:
  static Result<ByteSource> from_file(Fd fd, std::string name);
  static ByteSource from_memory(std::vector<std::byte> bytes, std::string name);

  uint64_t size() const { return size_; }
  bool contains(uint64_t offset, uint64_t count) const { return offset <= size_ && count <= size_ - offset; }
  // Exactly into.size() bytes, or an Error.
  Result<void> read(uint64_t offset, std::span<std::byte> into) const;

  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }
  bool in_memory() const { return !fd_; }
  std::span<const std::byte> memory() const { return memory_; }
  const struct stat& stat() const { return stat_; }

 private:
  ByteSource() = default;

  Fd fd_;
  std::vector<std::byte> memory_;
  std::string name_;
  uint64_t size_ = 0;
  struct stat stat_ = {};
};

}  // namespace cprof::object
