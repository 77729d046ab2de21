// The kernel's symbols of a run or a profile, and the names they give. Whether its addresses are of this boot the callers
// know: StackInterner (a run) and ProfileNamer (a profile that was read). Why there are none is said in the diagnostics.
#pragma once

#include <optional>
#include <string_view>

#include "base/diagnostics.h"
#include "object/kernel_symbols.h"

namespace cprof::pipeline {

// None when the file cannot be read or hides its addresses.
std::optional<object::KernelSymbols> load_kernel_symbols(const std::string& path, Diagnostics& diagnostics);

void note_foreign_kernel(Diagnostics& diagnostics);

struct KernelName {
  std::string_view name;
  uint64_t start = 0;  // 0: not known
};
// mapping: the path of what the address lies in. symbols may be null.
std::optional<KernelName> kernel_name(const object::KernelSymbols* symbols, uint64_t address, std::string_view mapping);

}  // namespace cprof::pipeline
