#include "image_files.h"

#include <algorithm>
#include <cstring>

#include "object/process_files.h"

namespace cprof::oracle {
namespace {

Image open_image(const Mapping& mapping) {
  Image image;
  if (mapping.is_vdso()) {
    auto bytes = object::read_own_vdso();
    if (!bytes) return image;
    auto file = object::ElfFile::from_memory(std::move(*bytes), "[vdso]");
    if (file) image.file = *file;
  } else if (mapping.is_file()) {
    auto file = object::ElfFile::open(mapping.path);
    if (file) image.file = *file;
  }
  if (!image.file) return image;
  auto table = unwind::ModuleTable::compile(*image.file, nullptr);
  if (table) image.table = *table;
  return image;
}

}  // namespace

const Image& ImageFiles::of(const Mapping& mapping) {
  auto it = images_.find(mapping.path);
  if (it == images_.end()) it = images_.emplace(mapping.path, open_image(mapping)).first;
  return it->second;
}

std::optional<uint64_t> ImageFiles::bias_of(const Mapping& mapping) {
  const Image& image = of(mapping);
  if (!image.file) return std::nullopt;
  return image.file->load_bias(mapping.start, mapping.is_vdso() ? 0 : mapping.file_offset);
}

std::vector<uint8_t> ImageFiles::code(const AddressSpace& space, uint64_t address, size_t count) {
  const Mapping* mapping = find_mapping(space, address);
  if (!mapping || address + count > mapping->end) return {};
  auto bias = bias_of(*mapping);
  if (!bias) return {};
  std::vector<uint8_t> bytes(count);
  if (!of(*mapping).file->read_at_svma(address - *bias, std::as_writable_bytes(std::span(bytes)))) return {};
  return bytes;
}

unwind::Memory::Read SnapshotMemory::read_u64(uint64_t address, uint64_t& value) {
  uint64_t sp = snapshot_.sp(), size = snapshot_.stack.size();
  if (address >= sp && address - sp < size) {
    if (size - (address - sp) < 8) return Read::kBeyondSnapshot;
    memcpy(&value, snapshot_.stack.data() + (address - sp), 8);
    return Read::kOk;
  }
  std::vector<uint8_t> bytes = files_.code(*snapshot_.space, address, 8);
  if (bytes.size() == 8) {
    memcpy(&value, bytes.data(), 8);
    return Read::kOk;
  }
  return address >= sp + size && address < sp + (8u << 20) ? Read::kBeyondSnapshot : Read::kUnreadable;
}

SpaceModules::SpaceModules(const AddressSpace& space, ImageFiles& files) {
  for (const auto& [start, mapping] : space) {
    auto bias = files.bias_of(mapping);
    modules_.push_back({start, mapping.end, bias.value_or(0), bias ? files.of(mapping).table.get() : nullptr});
  }
}

std::optional<unwind::Module> SpaceModules::find(uint64_t pc) {
  auto it = std::upper_bound(modules_.begin(), modules_.end(), pc, [](uint64_t a, const auto& m) { return a < m.start; });
  if (it == modules_.begin()) return std::nullopt;
  --it;
  if (pc >= it->end) return std::nullopt;
  return *it;
}

}  // namespace cprof::oracle
