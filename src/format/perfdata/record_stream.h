// Cuts bytes into records: {u32 type, u16 misc, u16 size} and size - 8 bytes. Stops at the first thing that cannot be a
// record, and says how it ended. Private to perfdata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "format/perfdata/byte_source.h"

namespace cprof::format::perfdata {

struct RawRecord {
  uint32_t type = 0;
  std::span<const std::byte> bytes;  // header included; valid until the next call
};

enum class StreamEnd : uint8_t { kComplete, kCutRecord, kBadSize };

class RecordStream {
 public:
  // Up to `end`, a position of the source.
  RecordStream(ByteSource& source, bool swap, uint64_t end);

  Result<std::optional<RawRecord>> next();
  // Passes over bytes that follow the last record and are not records.
  Result<void> skip(uint64_t bytes);
  StreamEnd end() const { return end_reason_; }
  uint64_t position() const { return source_.position() - (filled_ - used_); }

 private:
  Result<bool> have(size_t bytes);

  ByteSource& source_;
  bool swap_;
  uint64_t end_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t used_ = 0, filled_ = 0;
  StreamEnd end_reason_ = StreamEnd::kComplete;
};

}  // namespace cprof::format::perfdata
