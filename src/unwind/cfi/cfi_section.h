// Reads the entries of one .eh_frame or .debug_frame: CIEs (what a group of functions shares) and FDEs (one function
// each). Callers: the table compiler, the interpreter. Pure over bytes; hostile input gives skipped entries, counted.
// Sources: DWARF 5 section 6.4, LSB 5.0 "Exception Frames", the x86-64 psABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/byte_reader.h"

namespace cprof::unwind {

struct FrameState;

// One section's bytes and where it is loaded. Kept alive by the ModuleTable.
struct CfiSource {
  std::vector<std::byte> bytes;
  uint64_t svma = 0;            // of bytes[0]; 0 for .debug_frame
  bool is_eh_frame = true;
  bool ends_at_zero = false;    // the size is not known: a zero length ends it
  uint64_t text_svma = 0;       // base of DW_EH_PE_textrel
  uint64_t data_svma = 0;       // base of DW_EH_PE_datarel
};

struct Cie {
  uint64_t code_align = 1;
  int64_t data_align = 1;
  uint32_t return_register = 0;
  uint8_t address_size = 8;
  uint8_t fde_encoding = 0;     // DW_EH_PE_*
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  bool uses_b_key = false;      // aarch64 pointer authentication with key B
  std::span<const std::byte> instructions;
};

struct Fde {
  uint64_t start = 0, end = 0;  // svma, end exclusive
  uint64_t offset = 0;          // in its section
  const Cie* cie = nullptr;     // owned by the CfiSection
  std::span<const std::byte> instructions;
};

class CfiSection {
 public:
  explicit CfiSection(const CfiSource& source) : source_(source) {}

  // Every FDE in section order. Entries that cannot be read are counted in broken_entries().
  void for_each_fde(const std::function<void(const Fde&)>& visit);
  std::optional<Fde> fde_at(uint64_t offset);
  size_t broken_entries() const { return broken_; }

  // A pointer in encoding DW_EH_PE_*, absolute; nullopt: unreadable, omitted, or indirect (needs live memory).
  static std::optional<uint64_t> read_pointer(ByteReader& reader, const CfiSource& source, uint8_t encoding,
                                              uint8_t address_size);
  const CfiSource& source() const { return source_; }

 private:
  struct Entry {
    uint64_t offset = 0, next = 0;   // of the entry and its successor
    uint64_t id_position = 0, id = 0, body = 0;
    bool is_64bit = false;
  };
  std::optional<Entry> read_entry(uint64_t offset) const;
  bool is_cie(const Entry& entry) const;
  const Cie* cie_of(const Entry& fde);
  std::optional<Cie> parse_cie(const Entry& entry) const;
  std::optional<Fde> parse_fde(const Entry& entry);

  const CfiSource& source_;
  std::unordered_map<uint64_t, std::unique_ptr<Cie>> cies_;  // by offset; null: broken
  size_t broken_ = 0;
};

}  // namespace cprof::unwind
