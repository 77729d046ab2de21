#include "symbolize/dwarf_module.h"

#include <dwarf.h>
#include <fcntl.h>

#include <algorithm>
#include <unordered_map>

#include "symbolize/debug_links.h"
#include "symbolize/dwarf_package.h"
#include "symbolize/line_table.h"
#include "symbolize/scope_table.h"

namespace cprof::symbolize {
namespace {

constexpr size_t kMaxFrames = 1024;                      // at one address
constexpr uint64_t kMaxSplitBytes = uint64_t{4} << 30;  // of all .dwo files together
constexpr int kMaxReferences = 16;  // concrete -> abstract -> declaration -> ...

struct Function {
  std::string_view name, linkage_name, display;
  uint32_t decl_line = 0;
  bool resolved = false;
};

// A unit with code. die_file and die_unit are the .dwo's when it is split, else the main file's.
struct CodeUnit {
  enum class State : uint8_t { kUnbuilt, kBuilt, kBroken };

  Unit* unit = nullptr;
  State state = State::kUnbuilt;
  std::unique_ptr<DwarfFile> split;
  DwarfFile* die_file = nullptr;
  Unit* die_unit = nullptr;
  std::optional<ScopeTable> scopes;
  std::optional<LineTable> lines, split_files;
};

// Another ElfFile over the same bytes, whose cached sections nobody else drops.
std::shared_ptr<object::ElfFile> private_copy(object::ElfFile& file) {
  auto copy = file.fd() >= 0
                  ? object::ElfFile::open(Fd(fcntl(file.fd(), F_DUPFD_CLOEXEC, 0)), file.name())
                  : object::ElfFile::from_memory({file.memory().begin(), file.memory().end()}, file.name());
  return copy ? *copy : nullptr;
}

struct DieKey {
  const DwarfFile* file;
  uint64_t offset;
  bool operator==(const DieKey&) const = default;
};
struct DieKeyHash {
  size_t operator()(const DieKey& key) const {
    return (key.offset ^ reinterpret_cast<uintptr_t>(key.file)) * 0x9e3779b97f4a7c15ull >> 7;
  }
};

}  // namespace

struct DwarfModule::Impl {
  Impl(Demangler& d, AddressRanges c) : demangler(d), code(std::move(c)) {}

  void index_units();
  void build(CodeUnit& unit, Diagnostics& diagnostics);
  bool build_scopes(CodeUnit& unit, Diagnostics& diagnostics);
  void add_frames(CodeUnit& unit, const Scope& innermost, Found& found);
  const Function& function(DwarfFile& file, uint64_t die_offset);
  bool take_names(DwarfFile*& file, uint64_t& offset, Function& function);

  Demangler& demangler;
  AddressRanges code;
  std::unique_ptr<DwarfFile> file, supplementary;
  std::unique_ptr<DwarfPackage> package;
  bool package_tried = false;
  std::vector<CodeUnit> units;
  IntervalMap index;
  std::unordered_map<DieKey, Function, DieKeyHash> functions;
  uint64_t row_budget = 0, split_budget = kMaxSplitBytes;
};

DwarfModule::DwarfModule(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DwarfModule::~DwarfModule() = default;

std::unique_ptr<DwarfModule> DwarfModule::load(object::ElfFile& file, AddressRanges code, Demangler& demangler,
                                               Diagnostics& diagnostics) {
  auto impl = std::make_unique<Impl>(demangler, std::move(code));
  auto copy = private_copy(file);
  if (copy) impl->file = DwarfFile::load(std::move(copy), "", diagnostics);
  if (!impl->file) return nullptr;
  impl->row_budget = (1 << 20) + impl->file->sections().line.size() / 2;
  impl->supplementary = open_supplementary_file(file, diagnostics);
  if (impl->supplementary) impl->file->set_supplementary(impl->supplementary.get());
  impl->index_units();
  return std::unique_ptr<DwarfModule>(new DwarfModule(std::move(impl)));
}

// By what the units say of themselves; for those that say nothing, by .debug_aranges.
void DwarfModule::Impl::index_units() {
  std::vector<Interval> intervals;
  std::vector<std::pair<Unit*, std::pair<uint64_t, uint64_t>>> listed;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  file->listed_ranges(listed);
  std::stable_sort(listed.begin(), listed.end(), [](auto& a, auto& b) { return a.first < b.first; });
  for (Unit& unit : file->units()) {
    bool may_have_code = unit.type == DW_UT_compile || unit.type == DW_UT_skeleton;
    if (!may_have_code || !file->read_root(unit)) continue;
    ranges.clear();
    file->unit_ranges(unit, ranges);
    auto row = std::lower_bound(listed.begin(), listed.end(), &unit, [](auto& r, Unit* u) { return r.first < u; });
    if (!ranges.empty()) row = listed.end();
    for (; row != listed.end() && row->first == &unit; ++row) ranges.push_back(row->second);
    auto number = static_cast<uint32_t>(units.size());
    for (auto [start, end] : ranges) {
      uint64_t limit = code.end_of(start);
      if (limit != 0) intervals.push_back({start, std::min(end, limit), 0, number});
    }
    bool used = !intervals.empty() && intervals.back().payload == number;
    if (used) units.push_back({&unit, {}, {}, {}, {}, {}, {}, {}});
  }
  index = IntervalMap(std::move(intervals));
}

bool DwarfModule::Impl::build_scopes(CodeUnit& unit, Diagnostics& diagnostics) {
  unit.die_file = file.get();
  unit.die_unit = unit.unit;
  if (!unit.unit->dwo_name.empty()) {
    if (split_budget == 0) return false;
    if (!package_tried) package = DwarfPackage::open(file->name() + ".dwp", diagnostics);
    package_tried = true;
    unit.split = open_split_file(*unit.unit, *file, package.get(), diagnostics);
    if (!unit.split) return true;  // lines only
    split_budget -= std::min<uint64_t>(split_budget, unit.split->sections().info.size() + unit.split->sections().str.size());
    unit.die_file = unit.split.get();
    for (Unit& candidate : unit.split->units()) {
      if (candidate.dwo_id == unit.unit->dwo_id && unit.split->read_root(candidate)) unit.die_unit = &candidate;
    }
    unit.split_files = LineTable::parse_files(unit.die_unit->values, 0, unit.unit->comp_dir);
  }
  unit.scopes = ScopeTable::build(*unit.die_file, *unit.die_unit, code);
  return unit.scopes.has_value();
}

void DwarfModule::Impl::build(CodeUnit& unit, Diagnostics& diagnostics) {
  unit.state = CodeUnit::State::kBuilt;
  bool ok = build_scopes(unit, diagnostics);
  if (unit.unit->line_offset) {
    unit.lines = LineTable::parse(unit.unit->values, unit.unit->line_offset.number, unit.unit->comp_dir, code, row_budget);
    ok &= unit.lines.has_value();
  }
  if (ok) return;
  unit.state = CodeUnit::State::kBroken;
  diagnostics.add("debug_info_broken", Severity::kError,
                  "debug info of a compile unit cannot be read; its code has names from the symbol table only", 1,
                  file->name() + ": " + std::string(unit.unit->name));
}

// Takes what the DIE says and moves on to the DIE that it refers to; false: it refers to none.
bool DwarfModule::Impl::take_names(DwarfFile*& die_file, uint64_t& offset, Function& into) {
  Unit* unit = die_file->unit_at(offset);
  if (!unit || !die_file->read_root(*unit)) return false;
  const AbbreviationTable& table = die_file->abbreviations(*unit);
  ByteReader reader(die_file->sections().info.first(unit->end));
  reader.seek(offset);
  const Abbreviation* abbreviation = table.find(reader.uleb());
  if (!abbreviation || !reader.ok()) return false;
  Value next;
  for (const AttributeSpec& spec : table.specs(*abbreviation)) {
    Value value = read_value(reader, spec, unit->values.encoding);
    if (!reader.ok()) return false;
    switch (spec.name) {
      case DW_AT_name:
        if (into.name.empty()) into.name = unit->values.string(value);
        break;
      case DW_AT_linkage_name:
      case DW_AT_MIPS_linkage_name:
        if (into.linkage_name.empty()) into.linkage_name = unit->values.string(value);
        break;
      case DW_AT_decl_line:
        if (into.decl_line == 0) into.decl_line = static_cast<uint32_t>(value.number);
        break;
      case DW_AT_abstract_origin:
      case DW_AT_specification: next = value; break;
      default: break;
    }
  }
  if (!next) return false;
  if (next.form == DW_FORM_GNU_ref_alt || next.form == DW_FORM_ref_sup4 || next.form == DW_FORM_ref_sup8) {
    die_file = supplementary.get();
    offset = next.number;
    return die_file != nullptr;
  }
  auto target = unit->reference(next);
  offset = target.value_or(0);
  return target.has_value();
}

const Function& DwarfModule::Impl::function(DwarfFile& die_file, uint64_t die_offset) {
  Function& result = functions[{&die_file, die_offset}];
  if (result.resolved) return result;
  result.resolved = true;
  DwarfFile* at = &die_file;
  for (int i = 0; i < kMaxReferences && take_names(at, die_offset, result); i++) {
  }
  result.display = demangler.demangle(result.linkage_name.empty() ? result.name : result.linkage_name);
  return result;
}

// The innermost frame is where the address is; each next one is where the one before was called.
void DwarfModule::Impl::add_frames(CodeUnit& unit, const Scope& innermost, Found& found) {
  LineTable* files = unit.split_files ? &*unit.split_files : unit.lines ? &*unit.lines : nullptr;
  SourceLine place = found.place;
  for (const Scope* scope = &innermost; scope && found.lines.size() < kMaxFrames;
       scope = scope->inlined ? unit.scopes->parent(*scope) : nullptr) {
    const Function& named = function(*unit.die_file, scope->die_offset);
    SourceLine line = place;
    line.name = named.display;
    line.system_name = named.linkage_name.empty() ? named.name : named.linkage_name;
    line.start_line = named.decl_line;
    found.lines.push_back(line);
    found.function_start = scope->low_pc;
    place = {};
    place.file = files ? files->file(scope->call_file) : std::string_view{};
    place.line = scope->call_line;
    place.column = scope->call_column;
  }
}

DwarfModule::Found DwarfModule::find(uint64_t svma, Diagnostics& diagnostics) {
  Found found;
  uint32_t number = impl_->index.find(svma);
  if (number == IntervalMap::kNone) return found;
  CodeUnit& unit = impl_->units[number];
  if (unit.state == CodeUnit::State::kUnbuilt) impl_->build(unit, diagnostics);
  found.broken = unit.state == CodeUnit::State::kBroken;
  if (auto row = unit.lines ? unit.lines->find(svma) : std::nullopt) {
    found.place.file = unit.lines->file(row->file);
    found.place.line = row->line;
    found.place.column = row->column;
  }
  const Scope* scope = unit.scopes ? unit.scopes->find(svma) : nullptr;
  if (scope) impl_->add_frames(unit, *scope, found);
  return found;
}

bool DwarfModule::has_lines() const { return !impl_->units.empty() && !impl_->file->sections().line.empty(); }

}  // namespace cprof::symbolize
