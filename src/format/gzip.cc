#include "format/gzip.h"

#include <algorithm>
#include <climits>

namespace cprof::format {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 32 KiB window, gzip wrapper
constexpr int kLevel = 2;             // half the bytes of level 0's neighbours at nearly the speed of level 1
constexpr int kMemory = 8;
constexpr size_t kBufferBytes = 64 * 1024;

uInt clamp(size_t size) { return static_cast<uInt>(std::min<size_t>(size, INT_MAX)); }

Bytef* zlib_bytes(const std::byte* bytes) { return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes)); }

}  // namespace

bool is_gzip(std::span<const std::byte> head) {
  return head.size() >= 3 && head[0] == std::byte{0x1f} && head[1] == std::byte{0x8b} && head[2] == std::byte{8};
}

std::vector<std::byte> unpack_head(std::span<const std::byte> head, size_t max_bytes) {
  std::vector<std::byte> out(max_bytes);
  size_t used = 0;
  auto inflater = Inflater::create();
  while (inflater && used < max_bytes && !head.empty()) {
    auto step = inflater->step(head, std::span(out).subspan(used));
    if (!step || (step->consumed == 0 && step->produced == 0)) break;
    used += step->produced;
    head = head.subspan(step->consumed);
    if (step->member_ended) break;
  }
  out.resize(used);
  return out;
}

Result<Inflater> Inflater::create() {
  Inflater inflater;
  inflater.stream_.reset(new z_stream{});
  if (inflateInit2(inflater.stream_.get(), kGzipWindow) != Z_OK) return fail("no memory to unpack gzip");
  return inflater;
}

Result<Inflater::Step> Inflater::step(std::span<const std::byte> packed, std::span<std::byte> out) {
  z_stream& z = *stream_;
  z.next_in = zlib_bytes(packed.data());
  z.avail_in = clamp(packed.size());
  z.next_out = zlib_bytes(out.data());
  z.avail_out = clamp(out.size());
  const uInt in_before = z.avail_in, out_before = z.avail_out;
  int rc = inflate(&z, Z_NO_FLUSH);
  if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) return fail(z.msg ? z.msg : "damaged data");
  Step step{in_before - z.avail_in, out_before - z.avail_out, rc == Z_STREAM_END};
  if (step.member_ended) inflateReset(&z);
  return step;
}

Result<PackedOutput> PackedOutput::create(OutputFile& out, bool gzip) {
  PackedOutput packed(out);
  if (!gzip) return packed;
  packed.stream_.reset(new z_stream{});
  if (deflateInit2(packed.stream_.get(), kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail("no memory to pack gzip");
  packed.buffer_.resize(kBufferBytes);
  return packed;
}

Result<void> PackedOutput::write(std::string_view bytes) {
  if (!stream_) return out_->write(bytes);
  while (!bytes.empty()) {
    uInt size = clamp(bytes.size());
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_->avail_in = size;
    TRY(deflate_into_file(Z_NO_FLUSH));
    bytes.remove_prefix(size);
  }
  return {};
}

Result<void> PackedOutput::finish() {
  if (!stream_) return {};
  stream_->avail_in = 0;
  return deflate_into_file(Z_FINISH);
}

Result<void> PackedOutput::deflate_into_file(int flush) {
  do {
    stream_->next_out = zlib_bytes(buffer_.data());
    stream_->avail_out = clamp(buffer_.size());
    if (deflate(stream_.get(), flush) == Z_STREAM_ERROR) return fail(out_->path() + ": gzip failed");
    TRY(out_->write(std::span<const std::byte>(buffer_.data(), buffer_.size() - stream_->avail_out)));
  } while (stream_->avail_out == 0);
  return {};
}

}  // namespace cprof::format
