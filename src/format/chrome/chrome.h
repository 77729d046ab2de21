// Chrome's Trace Event JSON: what about:tracing, Perfetto and many other tools read and write. docs/formats/chrome.md
// tells what is kept.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& chrome_format();

bool sniff_chrome(std::span<const std::byte> head);
Result<profile::Profile> read_chrome(Input input, const ReadOptions& options);
Result<void> write_chrome(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
