#include "symbolize/dwarf_package.h"

#include <unistd.h>

#include <cstring>

#include "symbolize/debug_links.h"

namespace cprof::symbolize {
namespace {

constexpr uint32_t kMaxColumns = 16;  // there are 8 kinds of section

template <typename T>
T value_at(std::span<const std::byte> table, uint64_t index) {
  T value;
  memcpy(&value, table.data() + index * sizeof(T), sizeof(T));
  return value;
}

// Which section a column's number means: alike in both versions but for ranges, which version 2 left in the program.
DwarfSections::Bytes DwarfSections::* member_of(uint32_t kind, uint16_t version) {
  constexpr uint32_t kInfo = 1, kAbbrev = 3, kLine = 4, kStrOffsets = 6, kRnglists = 8;
  switch (kind) {
    case kInfo: return &DwarfSections::info;
    case kAbbrev: return &DwarfSections::abbrev;
    case kLine: return &DwarfSections::line;
    case kStrOffsets: return &DwarfSections::str_offsets;
    case kRnglists: return version >= 5 ? &DwarfSections::rnglists : nullptr;
    default: return nullptr;
  }
}

}  // namespace

std::unique_ptr<DwarfPackage> DwarfPackage::open(const std::string& path, Diagnostics& diagnostics) {
  if (access(path.c_str(), F_OK) != 0) return nullptr;
  auto refuse = [&](std::string why) {
    diagnostics.add("dwp_unreadable", Severity::kError,
                    "a package of split debug info (.dwp) could not be read; its code has lines but no inlined frames", 1,
                    std::move(why));
    return nullptr;
  };
  auto elf = open_object_file(path);
  if (!elf) return refuse(elf.error().message);
  auto index = (*elf)->section_data(".debug_cu_index");
  if (!index) return refuse(index.error().message);
  auto package = std::unique_ptr<DwarfPackage>(new DwarfPackage());
  if (!package->read_index(*index)) return refuse(path + ": its index of units is absent or broken");
  package->sections_ = DwarfFile::read_sections(**elf, ".dwo", diagnostics);
  package->elf_ = std::move(*elf);
  return package;
}

bool DwarfPackage::read_index(std::span<const std::byte> index) {
  ByteReader reader(index);
  version_ = reader.u16();
  reader.skip(2);
  columns_ = reader.u32();
  rows_ = reader.u32();
  slots_ = reader.u32();
  bool known = reader.ok() && (version_ == 2 || version_ == 5) && columns_ > 0 && columns_ <= kMaxColumns &&
               (slots_ & (slots_ - 1)) == 0;
  if (!known) return false;
  const uint64_t cells = uint64_t{columns_} * rows_;
  hashes_ = reader.bytes(uint64_t{slots_} * sizeof(uint64_t));
  row_numbers_ = reader.bytes(uint64_t{slots_} * sizeof(uint32_t));
  kinds_ = reader.bytes(uint64_t{columns_} * sizeof(uint32_t));
  offsets_ = reader.bytes(cells * sizeof(uint32_t));
  sizes_ = reader.bytes(cells * sizeof(uint32_t));
  return reader.ok();
}

uint32_t DwarfPackage::row_of(uint64_t dwo_id) const {
  if (slots_ == 0) return 0;
  const uint64_t mask = slots_ - 1, step = (dwo_id >> 32 & mask) | 1;
  uint64_t slot = dwo_id & mask;
  for (uint32_t tried = 0; tried < slots_; ++tried, slot = (slot + step) & mask) {
    const auto row = value_at<uint32_t>(row_numbers_, slot);
    if (row == 0) return 0;
    if (value_at<uint64_t>(hashes_, slot) == dwo_id) return row <= rows_ ? row : 0;
  }
  return 0;
}

std::unique_ptr<DwarfFile> DwarfPackage::unit(uint64_t dwo_id) const {
  const uint32_t row = row_of(dwo_id);
  if (row == 0) return nullptr;
  DwarfSections parts;
  parts.str = sections_.str;
  for (uint32_t column = 0; column < columns_; ++column) {
    auto member = member_of(value_at<uint32_t>(kinds_, column), version_);
    if (!member) continue;
    const uint64_t cell = uint64_t{row - 1} * columns_ + column;
    const uint64_t offset = value_at<uint32_t>(offsets_, cell), size = value_at<uint32_t>(sizes_, cell);
    const DwarfSections::Bytes whole = sections_.*member;
    if (offset > whole.size() || size > whole.size() - offset) return nullptr;
    parts.*member = whole.subspan(offset, size);
  }
  return DwarfFile::from_sections(elf_, parts);
}

}  // namespace cprof::symbolize
