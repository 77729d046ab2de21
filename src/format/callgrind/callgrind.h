// callgrind's profiles, which KCachegrind and callgrind_annotate read: costs of lines, and of calls between functions.
// docs/formats/callgrind.md says how a graph of calls becomes stacks, and stacks a graph.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& callgrind_format();

bool sniff_callgrind(std::span<const std::byte> head);
Result<profile::Profile> read_callgrind(Input input, const ReadOptions& options);
Result<void> write_callgrind(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
