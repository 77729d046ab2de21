#include "format/perfdata/record_stream.h"

#include <algorithm>
#include <cstring>

#include "base/byte_reader.h"

namespace cprof::format::perfdata {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr size_t kHeaderBytes = 8;

}  // namespace

RecordStream::RecordStream(ByteSource& source, bool swap, uint64_t end)
    : source_(source), swap_(swap), end_(end), buffer_(std::make_unique_for_overwrite<std::byte[]>(kReadBytes)) {}

// What is left moves to the buffer's start, so records stay aligned as they are in the file: to 8 bytes.
Result<bool> RecordStream::have(size_t bytes) {
  if (filled_ - used_ >= bytes) return true;
  memmove(buffer_.get(), buffer_.get() + used_, filled_ - used_);
  filled_ -= used_;
  used_ = 0;
  uint64_t left = end_ > source_.position() ? end_ - source_.position() : 0;
  size_t room = static_cast<size_t>(std::min<uint64_t>(kReadBytes - filled_, left));
  filled_ += TRY(source_.read({buffer_.get() + filled_, room}));
  return filled_ >= bytes;
}

Result<std::optional<RawRecord>> RecordStream::next() {
  if (end_reason_ != StreamEnd::kComplete) return std::nullopt;
  if (!TRY(have(kHeaderBytes))) {
    if (filled_ != used_) end_reason_ = StreamEnd::kCutRecord;
    return std::nullopt;
  }
  ByteReader header({buffer_.get() + used_, kHeaderBytes}, swap_);
  RawRecord record{header.u32(), {}};
  header.skip(2);
  size_t size = header.u16();
  if (size < kHeaderBytes) {
    end_reason_ = StreamEnd::kBadSize;
    return std::nullopt;
  }
  if (!TRY(have(size))) {
    end_reason_ = StreamEnd::kCutRecord;
    return std::nullopt;
  }
  record.bytes = {buffer_.get() + used_, size};
  used_ += size;
  return record;
}

Result<void> RecordStream::skip(uint64_t bytes) {
  uint64_t buffered = std::min<uint64_t>(bytes, filled_ - used_);
  used_ += static_cast<size_t>(buffered);
  if (bytes == buffered) return {};
  uint64_t left = end_ > source_.position() ? end_ - source_.position() : 0;
  if (bytes - buffered > left) end_reason_ = StreamEnd::kCutRecord;
  return source_.skip(std::min(bytes - buffered, left));
}

}  // namespace cprof::format::perfdata
