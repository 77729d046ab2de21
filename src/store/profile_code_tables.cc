// size-exempt: one table
#include "profile/frame_name.h"
#include "store/profile_tables.h"

namespace cprof::store {
namespace {

using profile::FrameKind;
using profile::Location;
using profile::Mapping;

// One row more than the profile has stands for code without a mapping, as the trace processor has it.
const Mapping* mapping(ProfileSource& s, uint32_t row) {
  return row < s.profile().mappings.size() ? &s.profile().mappings[row] : nullptr;
}

template <auto member>
Cell mapping_number(ProfileSource& s, uint32_t row) {
  const Mapping* m = mapping(s, row);
  return Cell::of_address(m ? static_cast<uint64_t>(m->*member) : 0);
}

// Likewise for the frame and the call site of samples without a stack.
const Location* location(ProfileSource& s, uint32_t row) {
  return row < s.profile().locations.size() ? &s.profile().locations[row] : nullptr;
}

std::string_view kind_name(FrameKind kind) {
  constexpr std::string_view kNames[] = {"user", "kernel", "jit", "interpreted", "unknown"};
  return kNames[static_cast<size_t>(kind)];
}

Cell frame_name(ProfileSource& s, uint32_t row) {
  const Location* l = location(s, row);
  if (!l || l->line_count == 0) return Cell::of(profile::kUnknownFrame);
  const auto& function = s.profile().functions[s.profile().lines[l->first_line].function.index()];
  return Cell::of(s.profile().text(function.name));
}

Cell frame_mapping(ProfileSource& s, uint32_t row) {
  const Location* l = location(s, row);
  const bool is_mapped = l && l->mapping.valid();
  return Cell::of(s.bases().mapping +
                  (is_mapped ? l->mapping.value : static_cast<int64_t>(s.profile().mappings.size())));
}

// In the file's terms where the address lies in the mapping.
Cell frame_rel_pc(ProfileSource& s, uint32_t row) {
  const Location* l = location(s, row);
  if (!l) return Cell::of(int64_t{0});
  if (!l->mapping.valid()) return Cell::of_address(l->address);
  const Mapping& m = s.profile().mappings[l->mapping.index()];
  return Cell::of_address(l->address >= m.start ? l->address - m.start + m.file_offset : l->address);
}

struct Symbol {
  const profile::Line* line;
  const profile::Function* function;
  bool is_inlined;
};

Symbol symbol(ProfileSource& s, uint32_t row) {
  const uint32_t at = s.location_of_symbol(row);
  const Location& l = s.profile().locations[at];
  const uint32_t i = row - s.first_symbol(at);
  const profile::Line& line = s.profile().lines[l.first_line + i];
  return {&line, &s.profile().functions[line.function.index()], i + 1 < l.line_count};
}

const profile::CallSite* site(ProfileSource& s, uint32_t row) {
  return row < s.profile().sites.size() ? &s.profile().sites[row] : nullptr;
}

ColumnTableDef mappings() {
  auto text = [](ProfileSource& s, uint32_t row, StringId Mapping::* member, std::string_view otherwise) {
    const Mapping* m = mapping(s, row);
    return m ? s.profile().text(m->*member) : otherwise;
  };
  static const auto text_of = text;
  return {"stack_profile_mapping",
          {{"id", "INTEGER"},
           {"build_id", "TEXT",
            [](ProfileSource& s, uint32_t row) { return Cell::of(text_of(s, row, &Mapping::build_id, "")); }},
           {"exact_offset", "INTEGER", mapping_number<&Mapping::file_offset>},
           {"start_offset", "INTEGER", [](ProfileSource&, uint32_t) { return Cell::of(int64_t{0}); }},
           {"start", "INTEGER", mapping_number<&Mapping::start>},
           {"end", "INTEGER", mapping_number<&Mapping::end>},
           {"load_bias", "INTEGER", mapping_number<&Mapping::load_bias>},
           {"name", "TEXT",
            [](ProfileSource& s, uint32_t row) {
              return Cell::of(text_of(s, row, &Mapping::path, profile::kUnknownFrame));
            }},
           {"has_functions", "INTEGER", mapping_number<&Mapping::has_functions>},
           {"has_filenames", "INTEGER", mapping_number<&Mapping::has_filenames>},
           {"has_line_numbers", "INTEGER", mapping_number<&Mapping::has_line_numbers>},
           {"has_inline_frames", "INTEGER", mapping_number<&Mapping::has_inline_frames>}},
          [](ProfileSource& s) { return s.mapping_count(); }};
}

ColumnTableDef frames() {
  return {"stack_profile_frame",
          {{"id", "INTEGER"},
           {"name", "TEXT", frame_name},
           {"mapping", "INTEGER", frame_mapping},
           {"rel_pc", "INTEGER", frame_rel_pc},
           {"symbol_set_id", "INTEGER",
            [](ProfileSource& s, uint32_t row) {
              const Location* l = location(s, row);
              return l && l->line_count > 0 ? Cell::of(s.bases().frame + row) : Cell{};
            }},
           {"deobfuscated_name", "TEXT", [](ProfileSource&, uint32_t) { return Cell{}; }},
           {"type", "TEXT",
            [](ProfileSource& s, uint32_t row) {
              const Location* l = location(s, row);
              return Cell::of(kind_name(l ? l->kind : FrameKind::kUnknown));
            }}},
          [](ProfileSource& s) { return s.frame_count(); }};
}

ColumnTableDef symbols() {
  return {
      "stack_profile_symbol",
      {{"id", "INTEGER"},
       {"symbol_set_id", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.bases().frame + s.location_of_symbol(row)); }},
       {"name", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::of(s.profile().text(symbol(s, row).function->name)); }},
       {"source_file", "TEXT",
        [](ProfileSource& s, uint32_t row) { return Cell::known(s.profile().text(symbol(s, row).function->file)); }},
       {"line_number", "INTEGER",
        [](ProfileSource& s, uint32_t row) {
          const Symbol found = symbol(s, row);
          const uint32_t number = found.line->line ? found.line->line : found.function->start_line;
          return number ? Cell::of(int64_t{number}) : Cell{};
        }},
       {"inlined", "INTEGER",
        [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{symbol(s, row).is_inlined}); }}},
      [](ProfileSource& s) { return s.symbol_count(); }};
}

ColumnTableDef call_sites() {
  return {"stack_profile_callsite",
          {{"id", "INTEGER"},
           {"depth", "INTEGER",
            [](ProfileSource& s, uint32_t row) { return Cell::of(int64_t{site(s, row) ? site(s, row)->depth : 0}); }},
           {"parent_id", "INTEGER",
            [](ProfileSource& s, uint32_t row) {
              const auto* found = site(s, row);
              return found && found->parent.valid() ? Cell::of(s.site_id(found->parent)) : Cell{};
            }},
           {"frame_id", "INTEGER",
            [](ProfileSource& s, uint32_t row) {
              const auto* found = site(s, row);
              return Cell::of(s.bases().frame +
                              (found ? found->location.value : static_cast<int64_t>(s.profile().locations.size())));
            }}},
          [](ProfileSource& s) { return s.site_count(); }};
}

}  // namespace

void add_code_columns(std::vector<ColumnTableDef>& list) {
  list.push_back(mappings());
  list.push_back(frames());
  list.push_back(symbols());
  list.push_back(call_sites());
}

const std::vector<ColumnTableDef>& profile_tables() {
  static const std::vector<ColumnTableDef> list = [] {
    std::vector<ColumnTableDef> made;
    add_code_columns(made);
    add_value_columns(made);
    add_time_columns(made);
    return made;
  }();
  return list;
}

}  // namespace cprof::store
