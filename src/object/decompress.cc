#include "object/decompress.h"

#include <fmt/format.h>
#include <libdeflate.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace cprof::object {
namespace {

constexpr uint64_t kMaxUnpackedBytes = uint64_t{4} << 30;
constexpr uint64_t kSmallBytes = 64 << 20;  // below it a ratio is harmless, up to the most that deflate can do
constexpr uint64_t kMaxRatio = 200, kMaxSmallRatio = 1032;
constexpr size_t kFirstBytes = 64 * 1024;
constexpr uint64_t kXzMemory = 96 << 20;  // what xz -9 needs to unpack, and some

// The output so far. room() is never empty until the claimed size is reached.
class GrowingOutput {
 public:
  GrowingOutput(uint64_t limit, size_t packed_size) : limit_(limit), first_(std::max(kFirstBytes, packed_size * 3)) {}

  bool grow() {
    if (used_ < buffer_.size() || used_ == limit_) return true;
    size_t wanted = buffer_.size() ? buffer_.size() * 2 : first_;
    return buffer_.resize(static_cast<size_t>(std::min<uint64_t>(wanted, limit_)));
  }
  std::span<std::byte> room() { return buffer_.span().subspan(used_); }
  void advance(size_t count) { used_ += count; }
  bool full() const { return used_ == limit_; }
  uint64_t used() const { return used_; }
  Buffer take() {
    CPROF_CHECK(buffer_.resize(used_));  // shrinking
    return std::move(buffer_);
  }

 private:
  Buffer buffer_;
  size_t used_ = 0;
  uint64_t limit_;
  size_t first_;
};

enum class Step : uint8_t { kMore, kEnd, kBroken };

class ZlibStream {
 public:
  explicit ZlibStream(std::span<const std::byte> input) : input_(input) { ready_ = inflateInit(&stream_) == Z_OK; }
  ~ZlibStream() {
    if (ready_) inflateEnd(&stream_);
  }
  ZlibStream(const ZlibStream&) = delete;

  Step step(std::span<std::byte> room, size_t* written) {
    if (!ready_) return Step::kBroken;
    if (stream_.avail_in == 0) feed();
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(room.size(), kMaxPiece));
    uInt before = stream_.avail_out;
    uInt input_before = stream_.avail_in;
    int result = inflate(&stream_, Z_NO_FLUSH);
    *written = before - stream_.avail_out;
    if (result == Z_STREAM_END) return Step::kEnd;
    bool progress = *written != 0 || stream_.avail_in != input_before;
    return result == Z_OK && progress ? Step::kMore : Step::kBroken;
  }

 private:
  static constexpr size_t kMaxPiece = 1 << 30;

  void feed() {
    size_t piece = std::min(input_.size(), kMaxPiece);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
    stream_.avail_in = static_cast<uInt>(piece);
    input_ = input_.subspan(piece);
  }

  z_stream stream_ = {};
  std::span<const std::byte> input_;
  bool ready_ = false;
};

class ZstdStream {
 public:
  explicit ZstdStream(std::span<const std::byte> input) : input_{input.data(), input.size(), 0} {}

  // A section may be several frames one after the other: the end is where the input ends at a frame's end.
  Step step(std::span<std::byte> room, size_t* written) {
    if (!stream_) return Step::kBroken;
    ZSTD_outBuffer output{room.data(), room.size(), 0};
    size_t input_before = input_.pos;
    size_t result = ZSTD_decompressStream(stream_.get(), &output, &input_);
    *written = output.pos;
    if (ZSTD_isError(result)) return Step::kBroken;
    if (result == 0 && input_.pos == input_.size) return Step::kEnd;
    bool progress = output.pos != 0 || input_.pos != input_before;
    return progress ? Step::kMore : Step::kBroken;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_{ZSTD_createDStream()};
  ZSTD_inBuffer input_;
};

template <typename Stream>
Result<Buffer> unpack(const CompressedBytes& packed, const std::string& name) {
  Stream stream(packed.bytes);
  GrowingOutput output(packed.unpacked_size, packed.bytes.size());
  std::byte beyond;  // once full, one spare byte shows whether more would come
  for (;;) {
    if (!output.grow()) return fail(name + ": out of memory while unpacking", ENOMEM);
    size_t written = 0;
    bool full = output.full();
    Step step = stream.step(full ? std::span(&beyond, 1) : output.room(), &written);
    if (step == Step::kBroken) return fail(fmt::format("{}: broken compressed data after {} bytes", name, output.used()));
    if (full && written) return fail(fmt::format("{}: unpacks to more than the {} bytes it claims", name, output.used()));
    output.advance(written);
    if (step == Step::kEnd) break;
  }
  if (!output.full())
    return fail(fmt::format("{}: unpacks to {} bytes, not the {} it claims", name, output.used(), packed.unpacked_size));
  return output.take();
}

// The whole at once, in half of zlib's time; nothing unless it is exactly what was claimed. A claim of that size may be
// believed: pages that nothing is written to cost nothing.
std::optional<Buffer> unpack_small_zlib(const CompressedBytes& packed) {
  if (packed.unpacked_size > kSmallBytes) return std::nullopt;
  std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> unpacker(libdeflate_alloc_decompressor(),
                                                                                        libdeflate_free_decompressor);
  Buffer buffer;
  if (!unpacker || !buffer.resize(packed.unpacked_size)) return std::nullopt;
  size_t consumed = 0, written = 0;
  auto room = buffer.span();
  auto result = libdeflate_zlib_decompress_ex(unpacker.get(), packed.bytes.data(), packed.bytes.size(), room.data(),
                                              room.size(), &consumed, &written);
  if (result != LIBDEFLATE_SUCCESS || written != room.size()) return std::nullopt;
  return buffer;
}

}  // namespace

Result<void> check_unpacked_size(uint64_t unpacked_size, uint64_t packed_size, const std::string& name) {
  uint64_t ratio = unpacked_size <= kSmallBytes ? kMaxSmallRatio : kMaxRatio;
  if (unpacked_size > kMaxUnpackedBytes)
    return fail(fmt::format("{}: claims to unpack to {} bytes, over the limit of 4 GiB", name, unpacked_size), EFBIG);
  if (unpacked_size / ratio > packed_size)
    return fail(fmt::format("{}: claims to unpack from {} to {} bytes, over the limit of {}:1", name, packed_size,
                            unpacked_size, ratio),
                EFBIG);
  return {};
}

Result<Buffer> decompress(const CompressedBytes& packed, const std::string& name) {
  TRY(check_unpacked_size(packed.unpacked_size, packed.bytes.size(), name));
  if (packed.kind == Compression::kZstd) return unpack<ZstdStream>(packed, name);
  if (auto whole = unpack_small_zlib(packed)) return std::move(*whole);
  return unpack<ZlibStream>(packed, name);  // large, or broken: it says where
}

Result<Buffer> unpack_xz(std::span<const std::byte> packed, const std::string& name) {
  uint64_t limit = std::min(kMaxUnpackedBytes, std::max(kSmallBytes, packed.size() * kMaxRatio));
  GrowingOutput output(limit, packed.size());
  lzma_stream stream = LZMA_STREAM_INIT;
  std::unique_ptr<lzma_stream, void (*)(lzma_stream*)> end(&stream, lzma_end);
  if (lzma_stream_decoder(&stream, kXzMemory, 0) != LZMA_OK) return fail(name + ": out of memory while unpacking", ENOMEM);
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  for (lzma_ret result = LZMA_OK; result != LZMA_STREAM_END;) {
    if (!output.grow()) return fail(name + ": out of memory while unpacking", ENOMEM);
    auto room = output.room();
    if (room.empty()) return fail(fmt::format("{}: unpacks to over the limit of {} bytes", name, limit), EFBIG);
    stream.next_out = reinterpret_cast<uint8_t*>(room.data());
    stream.avail_out = room.size();
    result = lzma_code(&stream, LZMA_FINISH);
    output.advance(room.size() - stream.avail_out);
    bool broken = result != LZMA_OK && result != LZMA_STREAM_END;
    if (broken) return fail(fmt::format("{}: broken xz data after {} bytes", name, output.used()));
  }
  return output.take();
}

}  // namespace cprof::object
