#include "format/pftrace/packet_stream.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "format/pftrace/pftrace_fields.h"
#include "format/pftrace/proto_fields.h"

namespace cprof::format {
namespace {

using protozero::data_view;
using protozero::pbf_wire_type;

constexpr size_t kMaxVarint = 10;
constexpr uint64_t kFreeUnpacked = uint64_t{16} << 20;  // whatever the ratio

// Tag and length of a packet take so many bytes at most: one for the tag of field 1.
constexpr size_t kMaxHeader = 1 + kMaxVarint;
constexpr std::byte kPacketTag{pft::Trace::kPacket << 3 | 2};

struct Varint {
  uint64_t value = 0;
  size_t size = 0;
};

std::optional<Varint> read_varint(std::span<const std::byte> bytes) {
  Varint result;
  for (std::byte byte : bytes.first(std::min(bytes.size(), kMaxVarint))) {
    result.value |= (std::to_integer<uint64_t>(byte) & 0x7f) << (7 * result.size);
    ++result.size;
    if ((byte & std::byte{0x80}) == std::byte{0}) return result;
  }
  return std::nullopt;
}

// A step of unpacking: what came out, and whether the stream has ended.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  struct Step {
    size_t produced = 0;
    bool ended = false, failed = false;
  };
  virtual Step step(std::span<char> out) = 0;
};

class ZlibUnpacker : public Unpacker {
 public:
  explicit ZlibUnpacker(data_view packed) : ready_(inflateInit(&stream_) == Z_OK) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
  }
  ~ZlibUnpacker() override {
    if (ready_) inflateEnd(&stream_);
  }
  ZlibUnpacker(const ZlibUnpacker&) = delete;
  ZlibUnpacker& operator=(const ZlibUnpacker&) = delete;

  Step step(std::span<char> out) override {
    if (!ready_) return {.failed = true};
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int rc = inflate(&stream_, Z_NO_FLUSH);
    const size_t produced = out.size() - stream_.avail_out;
    return {produced, rc == Z_STREAM_END, rc != Z_STREAM_END && (rc != Z_OK || produced == 0)};
  }

 private:
  z_stream stream_{};
  bool ready_;
};

class ZstdUnpacker : public Unpacker {
 public:
  explicit ZstdUnpacker(data_view packed) : stream_(ZSTD_createDStream()), in_{packed.data(), packed.size(), 0} {}

  Step step(std::span<char> out) override {
    if (!stream_) return {.failed = true};
    ZSTD_outBuffer into{out.data(), out.size(), 0};
    const size_t rc = ZSTD_decompressStream(stream_.get(), &into, &in_);
    const bool ended = rc == 0 && in_.pos == in_.size;
    return {into.pos, ended, ZSTD_isError(rc) != 0 || (!ended && into.pos == 0 && in_.pos == in_.size)};
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  ZSTD_inBuffer in_;
};

}  // namespace

PacketStream::PacketStream(InputStream input, const ReadOptions& options)
    : input_(std::move(input)), options_(options), buffer_(size_t{256} << 10) {}

Error PacketStream::broken(std::string_view what) const {
  return {fmt::format("{}: {} in the packet at byte {}", name(), what, offset_)};
}

Result<bool> PacketStream::fill(size_t bytes) {
  if (end_ - begin_ >= bytes) return true;
  if (begin_ > 0) memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < bytes) {
    // Grown with what really comes, never to a claimed size.
    if (end_ == buffer_.size()) buffer_.resize(std::min(std::max(bytes, size_t{1}), buffer_.size() * 2));
    const size_t got = TRY(input_.read(std::span(buffer_).subspan(end_)));
    end_ += got;
    if (got == 0) return false;
  }
  return true;
}

Result<void> PacketStream::for_each(const std::function<void(data_view)>& on_packet) {
  while (true) {
    TRY(fill(kMaxHeader));
    if (begin_ == end_) return {};
    if (buffer_[begin_] != kPacketTag) return std::unexpected(broken("no packet begins where one must: damaged"));
    const auto size = read_varint(std::span(buffer_).subspan(begin_ + 1, end_ - begin_ - 1));
    if (!size) return std::unexpected(broken("the length is damaged"));
    if (size->value > kMaxPacket) return std::unexpected(broken(fmt::format("a claim of {} bytes", size->value)));
    const size_t header = 1 + size->size, whole = header + size->value;
    if (!TRY(fill(whole))) return std::unexpected(broken("the file ends"));
    TRY(packet(std::span(buffer_).subspan(begin_ + header, size->value), on_packet));
    begin_ += whole;
    offset_ += whole;
  }
}

Result<void> PacketStream::packet(std::span<const std::byte> bytes, const std::function<void(data_view)>& on_packet) {
  const data_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    for (ProtoFields fields(view); fields.next();) {
      const bool is_zlib = fields.tag() == pft::Packet::kCompressedPackets, is_zstd = fields.tag() == pft::Packet::kZstdPackets;
      if ((is_zlib || is_zstd) && fields.wire_type() == pbf_wire_type::length_delimited)
        return unpack(fields.get_view(), is_zstd, on_packet);
      fields.skip();
    }
    on_packet(view);
  } catch (const protozero::exception&) {
    return std::unexpected(broken("damaged data"));
  }
  return {};
}

// All of it, then its packets; they hold no compressed ones again.
Result<void> PacketStream::unpack(data_view packed, bool is_zstd, const std::function<void(data_view)>& on_packet) {
  std::unique_ptr<Unpacker> unpacker;
  if (is_zstd) unpacker = std::make_unique<ZstdUnpacker>(packed);
  else unpacker = std::make_unique<ZlibUnpacker>(packed);
  packed_bytes_ += packed.size();
  std::string bytes;
  for (bool ended = false; !ended;) {
    const size_t before = bytes.size();
    bytes.resize(before + std::clamp<size_t>(before, 64 << 10, 4 << 20));
    const auto step = unpacker->step(std::span(bytes).subspan(before));
    if (step.failed) return std::unexpected(broken("compressed packets are damaged"));
    bytes.resize(before + step.produced);
    unpacked_bytes_ += step.produced;
    ended = step.ended;
    if (unpacked_bytes_ > options_.max_input_bytes || bytes.size() > kMaxPacket ||
        unpacked_bytes_ > kFreeUnpacked + packed_bytes_ * options_.max_ratio)
      return std::unexpected(broken("compressed packets unpack to more than is allowed (--max-input)"));
  }
  for (ProtoFields trace{data_view(bytes.data(), bytes.size())}; trace.next();) {
    if (trace.tag() == pft::Trace::kPacket && trace.wire_type() == pbf_wire_type::length_delimited) on_packet(trace.get_view());
    else trace.skip();
  }
  return {};
}

}  // namespace cprof::format
