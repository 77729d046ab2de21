// Lines and inlined frames of one file from its DWARF. An index says which unit an address lies in; a unit's scope and
// line tables are built when the first address falls into it. Called by ModuleSymbols.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "symbolize/address_ranges.h"
#include "symbolize/symbolizer.h"

namespace cprof::symbolize {

class DwarfModule {
 public:
  struct Found {
    std::vector<SourceLine> lines;    // innermost first; empty: in no function of the debug info
    uint64_t function_start = 0;
    SourceLine place;                 // file and line of the address itself, also without a function
    bool broken = false;              // the unit's debug info cannot be read
  };

  // Null: the file has no debug info.
  static std::unique_ptr<DwarfModule> load(object::ElfFile& file, AddressRanges code, Demangler& demangler,
                                           Diagnostics& diagnostics);
  ~DwarfModule();

  Found find(uint64_t svma, Diagnostics& diagnostics);
  bool has_lines() const;

 private:
  struct Impl;
  explicit DwarfModule(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cprof::symbolize
