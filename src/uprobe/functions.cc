#include "uprobe/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "uprobe/exit_sites.h"

namespace cprof::uprobe {
namespace {

using object::Symbol;

// What compilers hang onto the name of a function that they copied, split or moved.
constexpr std::string_view kCloneMarks[] = {".cold", ".constprop.", ".isra.", ".part.", ".lto_priv.", ".localalias", ".llvm.", ".clone."};

bool is_code(const object::ElfFile& file, uint64_t address) {
  return std::ranges::any_of(file.segments(), [&](const object::Segment& segment) {
    return (segment.flags & PF_X) != 0 && address >= segment.vaddr && address - segment.vaddr < segment.file_size;
  });
}

// Of the code that holds the address: its section, or its segment where there are no sections.
uint64_t end_of_code(const object::ElfFile& file, uint64_t address) {
  for (const object::Section& section : file.sections())
    if ((section.flags & SHF_EXECINSTR) != 0 && address >= section.vaddr && address - section.vaddr < section.size)
      return section.vaddr + section.size;
  for (const object::Segment& segment : file.segments())
    if (address >= segment.vaddr && address - segment.vaddr < segment.file_size) return segment.vaddr + segment.file_size;
  return address;
}

}  // namespace

std::string_view stem_of(std::string_view symbol) {
  size_t end = symbol.find('@', 1);
  for (std::string_view mark : kCloneMarks) end = std::min(end, symbol.find(mark, 1));
  return symbol.substr(0, end);
}

bool is_cold_part(std::string_view symbol) { return symbol.find(".cold", 1) != symbol.npos; }

struct FunctionFinder::FileSymbols {
  std::vector<Symbol> functions;  // by address; sizes are known; the name to prefer first
  std::vector<Symbol> cold;       // by address
  std::set<std::string_view> ifuncs;

  std::optional<CodePart> cold_part_at(uint64_t address) const {
    auto after = std::ranges::upper_bound(cold, address, {}, &Symbol::address);
    if (after == cold.begin()) return std::nullopt;
    const Symbol& symbol = *--after;
    if (address - symbol.address >= symbol.size) return std::nullopt;
    return CodePart{symbol.address, symbol.address + symbol.size};
  }
};

struct FunctionFinder::Family {
  std::string_view stem;
  std::vector<Symbol> parts;  // no two at one address
};

FunctionFinder::FunctionFinder(const Options& options)
    : options_(options), demangler_(options.style), full_(symbolize::DemangleStyle::kFull), brief_(symbolize::DemangleStyle::kShort) {}

Result<FunctionFinder::FileSymbols> FunctionFinder::read_symbols(object::ElfFile& file, object::ElfFile* debug) {
  FileSymbols symbols;
  std::vector<Symbol> all = TRY(file.symbols());
  if (debug != nullptr) {
    const std::vector<Symbol> more = TRY(debug->symbols());
    all.insert(all.end(), more.begin(), more.end());
  }
  for (const Symbol& symbol : all)
    if (symbol.type == STT_GNU_IFUNC) symbols.ifuncs.insert(stem_of(symbol.name));
  std::erase_if(all, [&](const Symbol& symbol) { return symbol.type != STT_FUNC || symbol.name.empty() || !is_code(file, symbol.address); });
  // Of the names of one place: those that others can see first, then the shorter ones.
  std::ranges::sort(all, [](const Symbol& a, const Symbol& b) {
    auto key = [](const Symbol& s) {
      const bool is_internal = s.name.starts_with("_") && !s.name.starts_with("_Z");
      return std::tuple(s.address, s.binding == STB_LOCAL, is_internal, s.name.size(), s.name);
    };
    return key(a) < key(b);
  });
  uint64_t next = UINT64_MAX;
  for (size_t i = all.size(); i-- > 0;) {
    Symbol& symbol = all[i];
    const uint64_t limit = end_of_code(file, symbol.address);
    if (i + 1 < all.size() && all[i + 1].address != symbol.address) next = all[i + 1].address;
    if (symbol.size == 0) symbol.size = std::min(next, limit) - symbol.address;
    symbol.size = std::min(symbol.size, limit - symbol.address);
  }
  for (const Symbol& symbol : all) (is_cold_part(symbol.name) ? symbols.cold : symbols.functions).push_back(symbol);
  const auto repeated = std::ranges::unique(symbols.cold, {}, &Symbol::address);  // both symbol tables have it
  symbols.cold.erase(repeated.begin(), repeated.end());
  return symbols;
}

bool FunctionFinder::matches(const FunctionPattern& pattern, std::string_view system_name) {
  return matches_glob(pattern.name, system_name) || matches_glob(pattern.name, full_.demangle(system_name)) ||
         matches_glob(pattern.name, brief_.demangle(system_name));
}

Result<std::vector<size_t>> FunctionFinder::add(uint32_t number, object::ElfFile& file, object::ElfFile* debug,
                                                std::span<const FunctionPattern> patterns) {
  const FileSymbols symbols = TRY(read_symbols(file, debug));
  std::vector<size_t> matched(patterns.size());
  std::map<std::string_view, bool> known;  // stems that were looked at
  std::map<std::string_view, Family> families;
  auto wanted = [&](std::string_view stem) {
    const auto [it, is_new] = known.try_emplace(stem, false);
    for (size_t i = 0; is_new && i < patterns.size(); i++) {
      const bool does_match = matches(patterns[i], stem);
      matched[i] += does_match;
      it->second |= does_match;
    }
    return it->second;
  };
  uint64_t taken = UINT64_MAX;  // an address belongs to the first wanted name
  std::vector<std::string_view> order;
  for (const Symbol& symbol : symbols.functions) {
    const std::string_view stem = stem_of(symbol.name);
    if (!wanted(stem) || symbol.address == taken) continue;
    taken = symbol.address;
    Family& family = families[stem];
    if (family.parts.empty()) order.push_back(stem);
    family.stem = stem;
    family.parts.push_back(symbol);
  }
  for (std::string_view name : symbols.ifuncs)
    if (!known.contains(name) && wanted(name)) ifuncs_.emplace_back(name);
  if (options_.most_functions != 0 && functions_.size() + order.size() > options_.most_functions)
    return fail(fmt::format("{} functions of {} match; name fewer, or raise --max-functions ({})", order.size(), file.name(),
                            options_.most_functions));
  for (std::string_view stem : order) TRY(add_family(number, file, symbols, families[stem]));
  return matched;
}

Result<void> FunctionFinder::add_family(uint32_t number, object::ElfFile& file, const FileSymbols& symbols, const Family& family) {
  ProbedFunction function;
  function.system_name = family.stem;
  function.name = demangler_.demangle(family.stem);
  function.file = number;
  for (const Symbol& part : family.parts) {
    std::vector<std::byte> first(std::min<uint64_t>(16, part.size));
    TRY(file.read_at_svma(part.address, first));
    const EntryPlace place = entry_place(first, part.address);
    uprobe_site site{};
    site.address = place.address;
    site.is_stepped = place.is_stepped;
    site.kind = UPROBE_ENTRY;
    site.condition = UPROBE_ALWAYS;
    site.base = site.index = UPROBE_NO_REGISTER;
    function.entries.push_back(site);
  }
  if (options_.finds_exits) find_exits(file, symbols, family, function);
  functions_.push_back(std::move(function));
  return {};
}

void FunctionFinder::find_exits(object::ElfFile& file, const FileSymbols& symbols, const Family& family, ProbedFunction& function) {
  auto finder = ExitFinder::open(file.machine());
  std::vector<uint64_t> entries;
  for (size_t i = 0; i < family.parts.size(); i++) {
    entries.push_back(family.parts[i].address);
    if (function.entries[i].address != family.parts[i].address) entries.push_back(function.entries[i].address);
  }
  for (const Symbol& part : family.parts) {
    FunctionCode code{.hot = {part.address, part.address + part.size}, .cold = {}, .entries = entries};
    for (const Symbol& cold : symbols.cold)
      if (cold.name.starts_with(part.name) && cold.name.substr(part.name.size()).starts_with(".cold") && code.cold.size() < 4)
        code.cold.push_back({cold.address, cold.address + cold.size});
    auto sites = finder ? finder->find(file, code, [&](uint64_t address) { return symbols.cold_part_at(address); })
                        : Result<std::vector<uprobe_site>>(std::unexpected(finder.error()));
    if (!sites) {
      function.exits.clear();
      function.why_untimed = sites.error().message;
      diagnostics_.add("functions_without_exits", Severity::kNotice,
                       "functions whose calls are counted and not timed, as where they are left is not told by their instructions", 1,
                       fmt::format("{}: {}", function.name, function.why_untimed));
      return;
    }
    function.exits.insert(function.exits.end(), sites->begin(), sites->end());
  }
}

}  // namespace cprof::uprobe
