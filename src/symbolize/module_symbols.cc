// One file's names: DWARF where an address has it, else the symbol table. Everything is built when first asked for, and
// each address is answered once.
#include <unordered_map>

#include "symbolize/dwarf_module.h"
#include "symbolize/symbol_index.h"
#include "symbolize/symbolizer.h"

namespace cprof::symbolize {
namespace {

bool is_mangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with("_R"); }

// Compilers move seldom run parts of a function elsewhere, under its name and ".cold".
std::string_view without_cold_mark(std::string_view name) { return name.substr(0, name.rfind(".cold")); }

}  // namespace

struct ModuleSymbols::Impl {
  std::shared_ptr<object::ElfFile> file, debug;
  Demangler& demangler;
  bool inline_frames;
  AddressRanges code{};
  std::unique_ptr<DwarfModule> dwarf{};
  std::unique_ptr<SymbolIndex> symbols{};
  bool opened = false;
  Diagnostics from_opening{};  // until the next find() hands it on
  std::unordered_map<uint64_t, Symbolized> answers{};

  void open(Diagnostics& diagnostics);
  Symbolized look_up(uint64_t svma, Diagnostics& diagnostics);
  void name_function(DwarfModule::Found& found, const IndexedSymbol* symbol) const;
};

ModuleSymbols::ModuleSymbols(std::shared_ptr<object::ElfFile> file, std::shared_ptr<object::ElfFile> debug,
                             Demangler& demangler, bool inline_frames)
    : impl_(std::make_unique<Impl>(Impl{std::move(file), std::move(debug), demangler, inline_frames})) {}
ModuleSymbols::~ModuleSymbols() = default;

void ModuleSymbols::Impl::open(Diagnostics& diagnostics) {
  opened = true;
  if (file) code = AddressRanges(*file);
  else if (debug) code = AddressRanges(*debug);
  if (debug) dwarf = DwarfModule::load(*debug, code, demangler, diagnostics);
  if (!dwarf && file) dwarf = DwarfModule::load(*file, code, demangler, diagnostics);
  symbols = std::make_unique<SymbolIndex>(file.get(), debug.get(), code, diagnostics);
}

// Debug info without a linkage name (of static functions, say) has the bare name only; the symbol there has it whole.
void ModuleSymbols::Impl::name_function(DwarfModule::Found& found, const IndexedSymbol* symbol) const {
  SourceLine& function = found.lines.back();
  if (!symbol) return;
  std::string_view name = without_cold_mark(symbol->name);
  bool is_this = symbol->start == found.function_start ||
                 (name.size() < symbol->name.size() && name.find(function.system_name) != name.npos);
  bool whole = is_this && is_mangled(name);
  if (!function.name.empty() && (is_mangled(function.system_name) || !whole)) return;
  function.system_name = name;
  function.name = demangler.demangle(name);
}

Symbolized ModuleSymbols::Impl::look_up(uint64_t svma, Diagnostics& diagnostics) {
  Symbolized result;
  if (!file && !debug) {
    result.miss = Miss::kNoFile;
    return result;
  }
  DwarfModule::Found found;
  if (dwarf) found = dwarf->find(svma, diagnostics);
  if (found.broken) result.miss = Miss::kBadDebugInfo;
  const IndexedSymbol* symbol = symbols->find(svma);
  if (!found.lines.empty()) {
    name_function(found, symbol);
    result.function_start = found.function_start;
    result.lines = std::move(found.lines);
    if (!inline_frames) result.lines.erase(result.lines.begin(), result.lines.end() - 1);
    result.lines.shrink_to_fit();
    return result;
  }
  if (!symbol) {
    if (!found.broken) result.miss = symbols->empty() && !dwarf ? Miss::kNoSymbols : Miss::kNotInSymbol;
    return result;
  }
  SourceLine line = found.place;
  line.system_name = symbol->name;
  line.name = demangler.demangle(symbol->name);
  result.lines.push_back(line);
  result.function_start = symbol->start;
  return result;
}

const Symbolized& ModuleSymbols::find(uint64_t svma, Diagnostics& diagnostics) {
  if (!impl_->opened) impl_->open(impl_->from_opening);
  diagnostics.merge(std::exchange(impl_->from_opening, {}));
  auto [place, fresh] = impl_->answers.try_emplace(svma);
  if (fresh) place->second = impl_->look_up(svma, diagnostics);
  return place->second;
}

bool ModuleSymbols::has_line_info() {
  if (!impl_->opened) impl_->open(impl_->from_opening);
  return impl_->dwarf && impl_->dwarf->has_lines();
}

}  // namespace cprof::symbolize
