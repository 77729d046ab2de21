// pprof's profile.proto, gzip or raw. docs/formats/pprof.md says how its parts map to the model.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& pprof_format();

bool sniff_pprof(std::span<const std::byte> head);
Result<profile::Profile> read_pprof(Input input, const ReadOptions& options);
Result<void> write_pprof(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
