// The function symbols of a file and of its debug file, flattened for lookup. Called by ModuleSymbols.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/diagnostics.h"
#include "base/string_table.h"
#include "object/elf_file.h"
#include "symbolize/address_ranges.h"
#include "symbolize/interval_map.h"

namespace cprof::symbolize {

struct IndexedSymbol {
  uint64_t start = 0;
  std::string_view name;
};

class SymbolIndex {
 public:
  // Either may be null. Both must outlive the index.
  SymbolIndex(object::ElfFile* file, object::ElfFile* debug, const AddressRanges& code, Diagnostics& diagnostics);

  // A symbol with a size covers that; one without reaches to the next symbol or the end of its section. Of nested
  // symbols the innermost.
  const IndexedSymbol* find(uint64_t svma) const;
  bool empty() const { return symbols_.empty(); }

 private:
  void add_file(object::ElfFile& file, std::vector<object::Symbol>& into, Diagnostics& diagnostics);
  void add_plt(object::ElfFile& file, std::vector<object::Symbol>& into);
  void index(std::vector<object::Symbol> symbols, const AddressRanges& code);

  StringTable plt_names_;
  std::vector<IndexedSymbol> symbols_;
  IntervalMap map_;
};

}  // namespace cprof::symbolize
