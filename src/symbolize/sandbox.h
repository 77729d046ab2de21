// Reads the symbols of a file that neither root nor the user vouches for (another user's, or one from a debuginfod server)
// in a forked child that can do nothing but read that file and write its answer: seccomp, bounded memory and CPU. The
// child's death is an Error here, never ours.
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

// Whether one of them is a stranger's; either may be null.
bool needs_sandbox(const object::ElfFile* file, const object::ElfFile* debug);

// What the child could not read is counted as if it had been read here.
Result<Batch> find_in_sandbox(ModuleSymbols& symbols, std::span<const uint64_t> svmas, Diagnostics& diagnostics);

}  // namespace cprof::symbolize
