#include "symbolize/symbol_index.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "symbolize/plt_stubs.h"

namespace cprof::symbolize {
namespace {

// Marks of the compiler inside functions, not functions.
bool is_mark(std::string_view name) { return name.empty() || name.starts_with(".L"); }

// Smaller is better, among symbols of one address.
auto rank(const object::Symbol& symbol) {
  unsigned binding = symbol.binding == STB_GLOBAL ? 0 : symbol.binding == STB_LOCAL ? 1 : 2;
  return std::tuple(symbol.type == STT_NOTYPE, symbol.size == 0, binding);
}

}  // namespace

SymbolIndex::SymbolIndex(object::ElfFile* file, object::ElfFile* debug, const AddressRanges& code, Diagnostics& diagnostics) {
  std::vector<object::Symbol> symbols;
  if (file) add_file(*file, symbols, diagnostics);
  if (debug && debug != file) add_file(*debug, symbols, diagnostics);
  if (file) add_plt(*file, symbols);
  index(std::move(symbols), code);
}

void SymbolIndex::add_file(object::ElfFile& file, std::vector<object::Symbol>& into, Diagnostics& diagnostics) {
  auto symbols = file.symbols();
  if (symbols) {
    into.insert(into.end(), symbols->begin(), symbols->end());
  } else {
    diagnostics.add("symbol_table_unreadable", Severity::kError, "a symbol table could not be read", 1, symbols.error().message);
  }
}

void SymbolIndex::add_plt(object::ElfFile& file, std::vector<object::Symbol>& into) {
  for (const PltStub& stub : find_plt_stubs(file)) {
    std::string_view name = plt_names_[plt_names_.intern(std::string(stub.callee) + "@plt")];
    into.push_back({stub.address, stub.size, name, STT_FUNC, STB_WEAK, 0});
  }
}

void SymbolIndex::index(std::vector<object::Symbol> symbols, const AddressRanges& code) {
  std::erase_if(symbols, [&](const object::Symbol& s) { return is_mark(s.name) || !code.contains(s.address); });
  std::sort(symbols.begin(), symbols.end(), [](const object::Symbol& a, const object::Symbol& b) {
    return std::tuple(a.address, rank(a), a.name) < std::tuple(b.address, rank(b), b.name);
  });
  auto same_address = [](const object::Symbol& a, const object::Symbol& b) { return a.address == b.address; };
  symbols.erase(std::unique(symbols.begin(), symbols.end(), same_address), symbols.end());

  std::vector<Interval> intervals;
  uint64_t sized_end = 0;  // of the sized symbols so far
  for (size_t i = 0; i < symbols.size(); i++) {
    const object::Symbol& symbol = symbols[i];
    uint64_t section_end = code.end_of(symbol.address), end = section_end;
    if (symbol.size > 0) {
      end = std::min(section_end, symbol.address + std::min(symbol.size, section_end - symbol.address));
      sized_end = std::max(sized_end, end);
    } else {
      if (symbol.type == STT_NOTYPE && symbol.address < sized_end) continue;  // a label in a function
      if (i + 1 < symbols.size()) end = std::min(end, symbols[i + 1].address);
    }
    intervals.push_back({symbol.address, end, symbol.address, static_cast<uint32_t>(symbols_.size())});
    symbols_.push_back({symbol.address, symbol.name});
  }
  map_ = IntervalMap(std::move(intervals));
}

const IndexedSymbol* SymbolIndex::find(uint64_t svma) const {
  uint32_t number = map_.find(svma);
  return number == IntervalMap::kNone ? nullptr : &symbols_[number];
}

}  // namespace cprof::symbolize
