// Recordings: SQLite databases that hold the whole profile. The tables are store's; here is what makes files of them.
#pragma once

#include "format/format.h"

namespace cprof::format {

FormatInfo cprof_format();

bool sniff_cprof(std::span<const std::byte> head);
Result<profile::Profile> read_cprof(Input input, const ReadOptions& options);
std::unique_ptr<GrowingFile> grow_cprof(std::string path);
Result<void> write_cprof(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
