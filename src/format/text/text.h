// Readable stacks, one paragraph a sample, as `perf script` prints them. docs/formats/text.md gives the line shapes.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& text_format();

bool sniff_text(std::span<const std::byte> head);
Result<profile::Profile> read_text(Input input, const ReadOptions& options);
Result<void> write_text(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
