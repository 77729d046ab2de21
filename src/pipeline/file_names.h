// Names for addresses of one file, in the sandbox when a file is a stranger's; and how each missing name is counted.
// Called by Namer (a run that ends) and ProfileNamer (a profile that was read).
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "base/diagnostics.h"
#include "object/elf_file.h"
#include "symbolize/symbolizer.h"

namespace cprof::pipeline {

struct NamedFile {
  std::shared_ptr<object::ElfFile> elf, debug;  // one may be null
  std::string_view path;
  bool inline_frames = true;
};

// Calls on_name(i, ...) for each svmas[i]; none when the file's reader failed, which is counted.
void name_addresses(const NamedFile& file, std::span<const uint64_t> svmas, symbolize::Demangler& demangler,
                    Diagnostics& diagnostics, const std::function<void(size_t, const symbolize::Symbolized&)>& on_name);

// The same with symbols that are kept for later: what they have read is not read again.
void name_addresses(symbolize::ModuleSymbols& symbols, const NamedFile& file, std::span<const uint64_t> svmas, Diagnostics& diagnostics,
                    const std::function<void(size_t, const symbolize::Symbolized&)>& on_name);

void count_miss(Diagnostics& diagnostics, symbolize::Miss miss, uint64_t count = 1, std::string_view example = {});

}  // namespace cprof::pipeline
