#include "symbolize/scope_table.h"

#include <dwarf.h>

namespace cprof::symbolize {
namespace {

bool is_type_without_code(uint16_t tag) {
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_enumeration_type || tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type;
}

// In the C family a type outside functions holds declarations only (the definitions are elsewhere and point to them).
bool is_c_family(uint16_t language) {
  switch (language) {
    case DW_LANG_C:
    case DW_LANG_C89:
    case DW_LANG_C99:
    case DW_LANG_C11:
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14: return true;
    default: return language >= 0x2a && language <= 0x2c;  // C++17, C++20, C17: newer than our dwarf.h
  }
}

}  // namespace

class ScopeBuilder {
 public:
  ScopeBuilder(DwarfFile& file, Unit& unit, const AddressRanges& code)
      : file_(file), unit_(unit), code_(code), table_(file.abbreviations(unit)),
        reader_(file.sections().info.first(unit.end)), skip_types_(is_c_family(unit.language)) {}

  std::optional<ScopeTable> run();

 private:
  struct Open {        // a DIE whose children are being read
    uint32_t scope;    // the scope that they belong to
    uint32_t depth;    // of that scope
    bool in_function;
  };
  struct Facts {
    Value low, high, ranges, entry, call_file, call_line, call_column;
    uint64_t sibling = 0, origin = 0;  // offsets in .debug_info; 0: none
  };

  Facts read_facts(const Abbreviation& abbreviation);
  void skip_subtree(const Abbreviation& abbreviation);
  std::optional<Open> add_scope(const Abbreviation& abbreviation, uint64_t die_offset, const Open& outer);

  DwarfFile& file_;
  Unit& unit_;
  const AddressRanges& code_;
  const AbbreviationTable& table_;
  ByteReader reader_;
  bool skip_types_;
  ScopeTable result_;
  std::vector<Interval> intervals_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // reused
};

std::optional<ScopeTable> ScopeBuilder::run() {
  std::vector<Open> open;
  reader_.seek(unit_.first_die);
  do {
    uint64_t offset = reader_.position();
    uint64_t code = reader_.uleb();
    if (code == 0) {
      if (!open.empty()) open.pop_back();
      continue;
    }
    const Abbreviation* abbreviation = table_.find(code);
    if (!abbreviation || !reader_.ok()) return std::nullopt;
    Open inner = open.empty() ? Open{Scope::kNone, 0, false} : open.back();
    if (abbreviation->tag == DW_TAG_subprogram || abbreviation->tag == DW_TAG_inlined_subroutine) {
      auto added = add_scope(*abbreviation, offset, inner);
      if (added) inner = *added;
      inner.in_function = true;
    } else if (skip_types_ && abbreviation->has_children && !inner.in_function && is_type_without_code(abbreviation->tag)) {
      skip_subtree(*abbreviation);
      continue;
    } else {
      skip_values(reader_, table_, *abbreviation, unit_.values.encoding);
    }
    if (abbreviation->has_children) open.push_back(inner);
  } while (reader_.ok() && !open.empty() && !reader_.at_end());
  if (!reader_.ok()) return std::nullopt;
  result_.scopes_.shrink_to_fit();
  result_.map_ = IntervalMap(std::move(intervals_));
  return std::move(result_);
}

ScopeBuilder::Facts ScopeBuilder::read_facts(const Abbreviation& abbreviation) {
  Facts facts;
  for (const AttributeSpec& spec : table_.specs(abbreviation)) {
    Value value = read_value(reader_, spec, unit_.values.encoding);
    switch (spec.name) {
      case DW_AT_low_pc: facts.low = value; break;
      case DW_AT_high_pc: facts.high = value; break;
      case DW_AT_ranges: facts.ranges = value; break;
      case DW_AT_entry_pc: facts.entry = value; break;
      case DW_AT_call_file: facts.call_file = value; break;
      case DW_AT_call_line: facts.call_line = value; break;
      case DW_AT_call_column: facts.call_column = value; break;
      case DW_AT_abstract_origin: facts.origin = unit_.reference(value).value_or(0); break;
      case DW_AT_sibling: facts.sibling = unit_.offset + value.number; break;
      default: break;
    }
  }
  return facts;
}

// Over the attributes and all children, by the sibling's offset when there is one.
void ScopeBuilder::skip_subtree(const Abbreviation& abbreviation) {
  if (abbreviation.has_sibling) {
    uint64_t sibling = read_facts(abbreviation).sibling;
    if (sibling > reader_.position() && sibling < unit_.end) return reader_.seek(sibling);
  } else {
    skip_values(reader_, table_, abbreviation, unit_.values.encoding);
  }
  size_t depth = 1;
  while (depth > 0 && reader_.ok() && !reader_.at_end()) {
    uint64_t code = reader_.uleb();
    if (code == 0) {
      depth--;
      continue;
    }
    const Abbreviation* child = table_.find(code);
    if (!child) return reader_.fail();
    skip_values(reader_, table_, *child, unit_.values.encoding);
    depth += child->has_children;
  }
}

std::optional<ScopeBuilder::Open> ScopeBuilder::add_scope(const Abbreviation& abbreviation, uint64_t die_offset, const Open& outer) {
  Facts facts = read_facts(abbreviation);
  if (!facts.low && !facts.ranges) return std::nullopt;
  ranges_.clear();
  if (!file_.code_ranges(unit_.values, facts.low, facts.high, facts.ranges, ranges_)) return std::nullopt;
  std::erase_if(ranges_, [this](const auto& range) { return !code_.contains(range.first); });
  if (ranges_.empty() || result_.scopes_.size() >= Scope::kNone) return std::nullopt;

  auto index = static_cast<uint32_t>(result_.scopes_.size());
  Scope scope;
  scope.die_offset = facts.origin ? facts.origin : die_offset;
  scope.low_pc = ranges_.front().first;
  scope.parent = outer.scope;
  scope.inlined = abbreviation.tag == DW_TAG_inlined_subroutine;
  scope.call_file = static_cast<uint32_t>(facts.call_file.number);
  scope.call_line = static_cast<uint32_t>(facts.call_line.number);
  scope.call_column = static_cast<uint16_t>(std::min<uint64_t>(facts.call_column.number, 0xffff));
  result_.scopes_.push_back(scope);
  for (auto [start, end] : ranges_) {
    uint64_t limit = std::min(end, code_.end_of(start));
    intervals_.push_back({start, limit, outer.depth + 1, index});
  }
  return Open{index, outer.depth + 1, true};
}

std::optional<ScopeTable> ScopeTable::build(DwarfFile& file, Unit& unit, const AddressRanges& code) {
  return ScopeBuilder(file, unit, code).run();
}

}  // namespace cprof::symbolize
