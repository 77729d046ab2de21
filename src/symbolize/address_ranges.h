// The executable parts of a file: what debug info says about any other address (functions that the linker discarded keep
// their DWARF, at address 0 or -1) is not about code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "object/elf_file.h"

namespace cprof::symbolize {

class AddressRanges {
 public:
  AddressRanges() = default;
  explicit AddressRanges(const object::ElfFile& file) {
    for (const object::Section& section : file.sections()) {
      if ((section.flags & SHF_EXECINSTR) && (section.flags & SHF_ALLOC)) add(section.vaddr, section.size);
    }
    if (ranges_.empty()) {
      for (const object::Segment& segment : file.segments()) {
        if (segment.flags & PF_X) add(segment.vaddr, segment.memory_size);
      }
    }
    std::sort(ranges_.begin(), ranges_.end());
  }

  bool contains(uint64_t address) const { return end_of(address) != 0; }

  // The end of the range that holds the address; 0: none does.
  uint64_t end_of(uint64_t address) const {
    auto after = std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(address, UINT64_MAX));
    if (after == ranges_.begin()) return 0;
    return address < std::prev(after)->second ? std::prev(after)->second : 0;
  }

 private:
  void add(uint64_t start, uint64_t size) {
    if (size > 0 && start + size > start) ranges_.emplace_back(start, start + size);
  }
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // [start, end)
};

}  // namespace cprof::symbolize
