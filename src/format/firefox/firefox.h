// The Firefox Profiler's processed JSON, as profiler.firefox.com saves it and samply writes it, plain or gzip: tables of
// columns, samples and markers of threads, counters. docs/formats/firefox.md says what each part becomes.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& firefox_format();

bool sniff_firefox(std::span<const std::byte> head);
Result<profile::Profile> read_firefox(Input input, const ReadOptions& options);
Result<void> write_firefox(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
