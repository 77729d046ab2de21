// Unpacks one compressed section. Bounded: an absurd claim is refused before anything is allocated, and the output
// grows with what really comes out, never to the claimed size up front. Private to object.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "object/buffer.h"

namespace cprof::object {

enum class Compression : uint8_t { kZlib, kZstd };

struct CompressedBytes {
  Compression kind = Compression::kZlib;
  uint64_t unpacked_size = 0;  // as the section claims
  std::span<const std::byte> bytes;
};

// The stream must give exactly unpacked_size bytes. name is for messages: "file: .debug_info".
Result<Buffer> decompress(const CompressedBytes& packed, const std::string& name);

// An xz file, which does not say its size in front: at most 64 MiB, or 200 times the packed bytes if that is more.
Result<Buffer> unpack_xz(std::span<const std::byte> packed, const std::string& name);

// What decompress() would refuse by the claim alone.
Result<void> check_unpacked_size(uint64_t unpacked_size, uint64_t packed_size, const std::string& name);

}  // namespace cprof::object
