#include "embed/module_names.h"

#include <cxxabi.h>

#include <cstdlib>

#include "symbolize/address_ranges.h"

namespace cprof::embed {
namespace {

constexpr size_t kMaxMangled = 16 * 1024;

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kMaxMangled) return name;
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

}  // namespace

const ModuleNames::Name* ModuleNames::find(uint32_t file, uint64_t svma, Diagnostics& diagnostics) {
  const LoadedFile& loaded = *modules_.files()[file];
  if (!loaded.elf) return nullptr;
  File& known = files_[file];
  if (!known.index)
    known.index = std::make_unique<symbolize::SymbolIndex>(loaded.elf.get(), nullptr, symbolize::AddressRanges(*loaded.elf), diagnostics);
  const symbolize::IndexedSymbol* symbol = known.index->find(svma);
  if (!symbol) return nullptr;
  const auto [it, is_new] = known.names.try_emplace(symbol->start);
  if (is_new) it->second = {demangled(std::string(symbol->name)), std::string(symbol->name), symbol->start};
  return &it->second;
}

}  // namespace cprof::embed
