// One unit's functions and inlined calls: a flat list with parents, and a map from address to the deepest one. Built in
// one linear pass over the unit's DIEs. Called by DwarfModule.
#pragma once

#include <optional>
#include <vector>

#include "symbolize/address_ranges.h"
#include "symbolize/dwarf_file.h"
#include "symbolize/interval_map.h"

namespace cprof::symbolize {

struct Scope {
  static constexpr uint32_t kNone = 0xffffffff;

  uint64_t die_offset = 0;  // where its name is looked for: the abstract origin when there is one
  uint64_t low_pc = 0;
  uint32_t parent = kNone;  // the scope it is inlined into or nested in
  uint32_t call_file = 0, call_line = 0;  // of an inlined one
  uint16_t call_column = 0;
  bool inlined = false;
};

class ScopeTable {
 public:
  // Nothing: the unit is broken.
  static std::optional<ScopeTable> build(DwarfFile& file, Unit& unit, const AddressRanges& code);

  const Scope* find(uint64_t address) const {
    uint32_t index = map_.find(address);
    return index == IntervalMap::kNone ? nullptr : &scopes_[index];
  }
  const Scope* parent(const Scope& scope) const { return scope.parent == Scope::kNone ? nullptr : &scopes_[scope.parent]; }

  uint32_t index(const Scope& scope) const { return static_cast<uint32_t>(&scope - scopes_.data()); }
  size_t size() const { return scopes_.size(); }

 private:
  friend class ScopeBuilder;
  std::vector<Scope> scopes_;
  IntervalMap map_;
};

}  // namespace cprof::symbolize
