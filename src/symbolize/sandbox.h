// Reads the symbols of a file that neither root nor the user owns in a forked child that can do nothing but read that
// file and write its answer: seccomp, bounded memory and CPU. The child's death is an Error here, never ours.
// Called by the pipeline's namer; the calling process must have one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "symbolize/symbolizer.h"

namespace cprof::symbolize {

// Answers for the asked addresses, in their order. Views point into the batch.
struct Batch {
  std::vector<Symbolized> results;
  std::vector<std::byte> bytes;
};

// Whether the owner of this file is a stranger to the process.
bool needs_sandbox(const object::ElfFile& file);

Result<Batch> find_in_sandbox(ModuleSymbols& symbols, std::span<const uint64_t> svmas);

}  // namespace cprof::symbolize
