// The packets of a Perfetto trace, one after the other, from any input: those in compressed_packets (zlib or zstd) come in
// their place. Memory is the largest packet and what one compressed packet holds, both bounded. Used by the pftrace
// reader; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "format/input.h"

namespace cprof::format {

class PacketStream {
 public:
  // max_unpacked_bytes: of all compressed packets together.
  PacketStream(InputStream input, const ReadOptions& options);

  // Calls on_packet for each packet, whose bytes are valid during the call. protozero's exceptions inside it, and damage
  // of the file, become errors that tell the byte of the packet.
  Result<void> for_each(const std::function<void(protozero::data_view)>& on_packet);
  const std::string& name() const { return input_.name(); }

 private:
  static constexpr uint64_t kMaxPacket = uint64_t{256} << 20;

  Result<bool> fill(size_t bytes);  // that many unread bytes in the buffer; false: the input ends before
  Result<void> packet(std::span<const std::byte> bytes, const std::function<void(protozero::data_view)>& on_packet);
  Result<void> unpack(protozero::data_view packed, bool is_zstd,
                      const std::function<void(protozero::data_view)>& on_packet);
  Error broken(std::string_view what) const;

  InputStream input_;
  ReadOptions options_;
  std::vector<std::byte> buffer_;
  size_t begin_ = 0, end_ = 0;
  uint64_t offset_ = 0;  // in the file, of begin_
  uint64_t unpacked_bytes_ = 0, packed_bytes_ = 0;
};

}  // namespace cprof::format
