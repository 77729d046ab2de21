// The bytes of an input, read forward, with a look at other places when the input can seek. A file-form perf.data from a
// pipe is spooled into an unnamed temporary file first. Private to perfdata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "format/format.h"

namespace cprof::format::perfdata {

class ByteSource {
 public:
  ByteSource(Input input, const ReadOptions& options) : input_(std::move(input)), options_(options) {}

  // Fills `into` unless the input ends: a short count is the end.
  Result<size_t> read(std::span<std::byte> into);
  Result<void> skip(uint64_t bytes);
  uint64_t position() const { return position_; }

  // Makes the input seekable; size() and read_at() need it.
  Result<void> make_seekable();
  uint64_t size() const { return size_; }
  Result<void> read_at(uint64_t offset, std::span<std::byte> into);
  void seek(uint64_t offset) { position_ = offset; }

  const std::string& name() const { return input_.name; }

 private:
  Result<size_t> read_some(std::span<std::byte> into);
  Result<void> spool();

  Input input_;
  ReadOptions options_;
  uint64_t position_ = 0, size_ = 0;
};

}  // namespace cprof::format::perfdata
