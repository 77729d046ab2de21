// Compiles the CFI of one module into rows. Callers: ModuleTable::compile (from an ELF file), tests (from bytes).
// What it decides beyond translating: which FDE holds where several claim an address, what code without CFI means
// (docs/unwind.md, "Gaps"), and how far padding belongs to the function behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "unwind/cfi/machine.h"
#include "unwind/cfi/row_builder.h"

namespace cprof::unwind {

struct CompileInput {
  const MachineCfi* machine = nullptr;
  std::vector<std::pair<uint64_t, uint64_t>> text;  // executable segments [start, end), svma
  std::vector<KnownCode> known_code;                // used only where no FDE holds
  uint64_t entry = 0;
  std::function<bool(uint64_t svma, std::span<std::byte> into)> read_text;
};

// An FDE and the addresses where it holds: FDEs overlap in hostile or odd files, these do not.
struct FdeRange {
  uint32_t start = 0, size = 0;      // start is relative to the row set's base
  uint32_t place = 0;                // source in the top two bits, offset in that section below
  static constexpr unsigned kSourceShift = 30;
  static constexpr uint32_t kMaxSectionBytes = 1u << kSourceShift;
  uint32_t source() const { return place >> kSourceShift; }
  uint32_t offset() const { return place & (kMaxSectionBytes - 1); }
};

struct CompileStats {
  uint64_t broken_entries = 0;       // CIEs and FDEs that could not be read at all
  uint64_t broken_programs = 0;      // FDEs whose instructions are broken: BAD from there on
  uint64_t outside_text = 0;         // FDEs for addresses that are not executable (discarded functions)
  uint64_t complex_rows = 0;
};

struct CompiledTable {
  RowSet rows;
  std::vector<FdeRange> fdes;        // sorted, disjoint
  CompileStats stats;
};

// At most four sources, best first; each below FdeRange::kMaxSectionBytes.
CompiledTable compile_rows(const CompileInput& input, const std::vector<CfiSource>& sources);

}  // namespace cprof::unwind
