// speedscope's own JSON format: several profiles in a file over one list of frames, each a list of weighted stacks or of
// open and close events. docs/formats/speedscope.md says what each part becomes.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& speedscope_format();

bool sniff_speedscope(std::span<const std::byte> head);
Result<profile::Profile> read_speedscope(Input input, const ReadOptions& options);
Result<void> write_speedscope(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
