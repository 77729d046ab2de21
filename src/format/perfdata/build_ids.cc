#include "format/perfdata/build_ids.h"

#include <algorithm>

#include "base/byte_reader.h"
#include "format/perfdata/layout.h"

namespace cprof::format::perfdata {
namespace {

constexpr size_t kHeaderBytes = 8, kPidBytes = 4, kIdBytes = 24;  // 20 of the id, its length, padding
constexpr size_t kLongestId = 20;
constexpr size_t kMostEntries = 1 << 20;

std::vector<std::byte> id_of(std::span<const std::byte> field, bool has_size) {
  size_t size = kLongestId;
  if (has_size) size = std::min(static_cast<size_t>(field[kLongestId]), kLongestId);
  std::vector<std::byte> id(field.begin(), field.begin() + static_cast<std::ptrdiff_t>(size));
  auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  while (!has_size && id.size() >= 4 && std::all_of(id.end() - 4, id.end(), is_zero)) id.resize(id.size() - 4);
  if (std::ranges::all_of(id, is_zero)) id.clear();
  return id;
}

}  // namespace

void BuildIds::add_table(std::span<const std::byte> entries, bool swap, bool in_order) {
  ByteReader in(entries, swap);
  while (in.remaining() >= kHeaderBytes + kPidBytes + kIdBytes && by_path_.size() < kMostEntries) {
    in.skip(4);
    const uint16_t misc = in.u16(), size = in.u16();
    if (size < kHeaderBytes + kPidBytes + kIdBytes || size - kHeaderBytes > in.remaining()) return;
    in.skip(kPidBytes);
    auto field = in.bytes(kIdBytes);
    auto name = in.bytes(size - kHeaderBytes - kPidBytes - kIdBytes);
    std::string_view path(reinterpret_cast<const char*>(name.data()), name.size());
    add(std::string(path.substr(0, path.find('\0'))), id_of(field, misc & kHasIdSize), in_order);
  }
}

void BuildIds::add(std::string path, std::vector<std::byte> id, bool in_order) {
  if (path.empty() || id.empty()) return;
  auto [it, is_new] = by_path_.try_emplace(std::move(path), id);
  if (is_new || it->second == id) return;
  it->second = in_order ? std::move(id) : std::vector<std::byte>();
}

std::span<const std::byte> BuildIds::find(std::string_view path) const {
  auto it = by_path_.find(path);
  return it == by_path_.end() ? std::span<const std::byte>() : std::span<const std::byte>(it->second);
}

}  // namespace cprof::format::perfdata
