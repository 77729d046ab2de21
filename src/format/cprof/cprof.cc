#include "format/cprof/cprof.h"

#include <algorithm>
#include <cstring>

#include "store/schema.h"

namespace cprof::format {
namespace {

// SQLite's file format, section 1.3: the magic, and where the application id is.
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kApplicationIdOffset = 68;

}  // namespace

bool sniff_cprof(std::span<const std::byte> head) {
  if (head.size() < kApplicationIdOffset + 4 || memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) return false;
  uint32_t id = 0;
  for (std::byte b : head.subspan(kApplicationIdOffset, 4)) id = id << 8 | static_cast<uint32_t>(b);
  return id == static_cast<uint32_t>(store::kApplicationId);
}

FormatInfo cprof_format() {
  FormatInfo info;
  info.name = "cprof";
  info.title = "cprof recording";
  info.extensions = {".cprof"};
  info.sniff = sniff_cprof;
  info.read = read_cprof;
  info.write = write_cprof;
  info.grow = grow_cprof;
  return info;
}

}  // namespace cprof::format
