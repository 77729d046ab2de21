#include "format/perfdata/inflate_records.h"

#include <cstring>

#include "base/byte_reader.h"

namespace cprof::format::perfdata {
namespace {

constexpr size_t kInflatedBytes = 512 * 1024;
constexpr uint64_t kRatioFrom = 16u << 20;  // unpacked bytes before which a ratio means nothing
constexpr int kMostWindowLog = 27;          // 128 MiB: what zstd itself allows by default

}  // namespace

// True when there may be more to unpack from the same payload.
Result<bool> RecordInflater::fill(ZSTD_inBuffer& in) {
  if (!stream_) {
    stream_.reset(ZSTD_createDStream());
    if (!stream_) return fail("no memory for unpacking zstd", ENOMEM);
    ZSTD_initDStream(stream_.get());
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, kMostWindowLog);
    buffer_.resize(kInflatedBytes);
  }
  memmove(buffer_.data(), buffer_.data() + used_, filled_ - used_);
  filled_ -= used_;
  used_ = 0;
  ZSTD_outBuffer out{buffer_.data(), buffer_.size(), filled_};
  size_t code = ZSTD_decompressStream(stream_.get(), &out, &in);
  if (ZSTD_isError(code)) return fail(std::string("a compressed record: ") + ZSTD_getErrorName(code));
  unpacked_bytes_ += out.pos - filled_;
  filled_ = out.pos;
  if (unpacked_bytes_ > options_.max_input_bytes)
    return fail("unpacks to more than the limit of " + std::to_string(options_.max_input_bytes) + " bytes; see --max-input", EFBIG);
  if (unpacked_bytes_ > kRatioFrom && unpacked_bytes_ / options_.max_ratio > packed_bytes_)
    return fail("unpacks to more than " + std::to_string(options_.max_ratio) + " times its size; see --max-input", EFBIG);
  return in.pos < in.size || out.pos == out.size;
}

// Empty: no whole record is there.
Result<std::span<const std::byte>> RecordInflater::next(bool swap) {
  std::span<const std::byte> held(buffer_.data() + used_, filled_ - used_);
  if (held.size() < 8) return std::span<const std::byte>();
  ByteReader header(held, swap);
  header.skip(6);
  size_t size = header.u16();
  if (size < 8) return fail("a compressed record of " + std::to_string(size) + " bytes, which cannot be");
  if (size > held.size()) return std::span<const std::byte>();
  used_ += size;
  return held.first(size);
}

}  // namespace cprof::format::perfdata
