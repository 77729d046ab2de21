// The CPU profiles of V8 (Node's --cpu-prof, Chrome's DevTools): a tree of functions, and samples that name its nodes.
// Read only. docs/formats/cpuprofile.md says what each part becomes.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& cpuprofile_format();

bool sniff_cpuprofile(std::span<const std::byte> head);
Result<profile::Profile> read_cpuprofile(Input input, const ReadOptions& options);

}  // namespace cprof::format
