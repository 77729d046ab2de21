// PERF_RECORD_COMPRESSED: the payloads of these records, one after the other, are one zstd stream of further records,
// which may be cut anywhere between two payloads. Private to perfdata.
#pragma once

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "format/format.h"

namespace cprof::format::perfdata {

class RecordInflater {
 public:
  explicit RecordInflater(const ReadOptions& options) : options_(options) {}

  // Unpacks a payload and calls take(bytes of one record) for each whole record; the rest waits for the next payload.
  template <typename Take>
  Result<void> feed(std::span<const std::byte> payload, bool swap, Take&& take) {
    ZSTD_inBuffer in{payload.data(), payload.size(), 0};
    packed_bytes_ += payload.size();
    for (bool more = true; more;) {
      more = TRY(fill(in));
      for (;;) {
        std::span<const std::byte> record = TRY(next(swap));
        if (record.empty()) break;
        TRY(take(record));
      }
    }
    return {};
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };

  Result<bool> fill(ZSTD_inBuffer& in);
  Result<std::span<const std::byte>> next(bool swap);

  ReadOptions options_;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  std::vector<std::byte> buffer_;
  size_t used_ = 0, filled_ = 0;
  uint64_t packed_bytes_ = 0, unpacked_bytes_ = 0;
};

}  // namespace cprof::format::perfdata
