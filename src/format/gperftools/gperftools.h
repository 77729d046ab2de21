// The profile formats from before pprof's protobuf, as gperftools, Go, jemalloc and Java agents wrote and write them: the
// binary CPU profile and the texts of heap, growth, contention, thread and count profiles. Read only.
// docs/formats/gperftools.md says which.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& gperftools_format();

bool sniff_gperftools(std::span<const std::byte> head);
Result<profile::Profile> read_gperftools(Input input, const ReadOptions& options);

}  // namespace cprof::format
