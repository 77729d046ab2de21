#include "pipeline/file_names.h"

#include <fmt/format.h>

#include "symbolize/sandbox.h"

namespace cprof::pipeline {
namespace {

std::string_view description_of(symbolize::Miss miss) {
  using enum symbolize::Miss;
  switch (miss) {
    case kNoFile: return "frames without a name: their file could not be read";
    case kNoSymbols: return "frames without a name: their file is stripped; install its debug package";
    case kNotInSymbol: return "frames without a name: no symbol of their file covers them; install its debug package";
    case kBadDebugInfo: return "frames without a name: their file's debug information is broken";
    case kNoMapping: return "frames without a name: their address lies in no mapping";
    case kNone: break;
  }
  return "frames without a name";
}

std::string_view name_of(symbolize::Miss miss) {
  using enum symbolize::Miss;
  switch (miss) {
    case kNoFile: return "unnamed_no_file";
    case kNoSymbols: return "unnamed_no_symbols";
    case kNotInSymbol: return "unnamed_not_in_symbol";
    case kBadDebugInfo: return "unnamed_bad_debug_info";
    case kNoMapping: return "unnamed_no_mapping";
    case kNone: break;
  }
  return "unnamed";
}

}  // namespace

void name_addresses(const NamedFile& file, std::span<const uint64_t> svmas, symbolize::Demangler& demangler,
                    Diagnostics& diagnostics, const std::function<void(size_t, const symbolize::Symbolized&)>& on_name) {
  symbolize::ModuleSymbols symbols(file.elf, file.debug, demangler, file.inline_frames);
  name_addresses(symbols, file, svmas, diagnostics, on_name);
}

void name_addresses(symbolize::ModuleSymbols& symbols, const NamedFile& file, std::span<const uint64_t> svmas, Diagnostics& diagnostics,
                    const std::function<void(size_t, const symbolize::Symbolized&)>& on_name) {
  if (!symbolize::needs_sandbox(file.elf.get(), file.debug.get())) {
    for (size_t i = 0; i < svmas.size(); i++) on_name(i, symbols.find(svmas[i], diagnostics));
    return;
  }
  auto batch = symbolize::find_in_sandbox(symbols, svmas, diagnostics);
  if (!batch) {
    diagnostics.add("symbol_reader_failed", Severity::kError,
                    "files of other users or servers whose symbols could not be read: their frames have no names", 1,
                    fmt::format("{}: {}", file.path, batch.error().message));
    return;
  }
  for (size_t i = 0; i < svmas.size(); i++) on_name(i, batch->results[i]);
}

void count_miss(Diagnostics& diagnostics, symbolize::Miss miss, uint64_t count, std::string_view example) {
  diagnostics.add(name_of(miss), Severity::kNotice, description_of(miss), count, example);
}

}  // namespace cprof::pipeline
