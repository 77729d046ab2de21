// A package of split debug info (.dwp): the .dwo files of a program in one, with an index from a unit's id to its parts of
// the sections (DWARF 5, section 7.3.5; GNU's version 2 before it). Called by DwarfModule.
#pragma once

#include <memory>
#include <string>

#include "symbolize/dwarf_file.h"

namespace cprof::symbolize {

class DwarfPackage {
 public:
  // Null: there is none, or it cannot be used (then counted).
  static std::unique_ptr<DwarfPackage> open(const std::string& path, Diagnostics& diagnostics);

  // Null: not in it.
  std::unique_ptr<DwarfFile> unit(uint64_t dwo_id) const;

 private:
  DwarfPackage() = default;
  bool read_index(std::span<const std::byte> index);
  uint32_t row_of(uint64_t dwo_id) const;  // from 1; 0: none

  std::shared_ptr<object::ElfFile> elf_;
  DwarfSections sections_;
  uint16_t version_ = 0;
  uint32_t columns_ = 0, rows_ = 0, slots_ = 0;
  std::span<const std::byte> hashes_, row_numbers_, kinds_, offsets_, sizes_;
};

}  // namespace cprof::symbolize
