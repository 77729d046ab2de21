// Perfetto's protobuf trace, read and written directly: tracks of processes and threads, slices, marks, counters and
// samples with interned call stacks. docs/formats/pftrace.md lists the rules that its importer demands and these files keep.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& pftrace_format();

// The category of slices that the writer makes of samples; the reader leaves them out where the samples are there too.
inline constexpr std::string_view kSampledCategory = "sampled";

// The annotation of a slice whose end was never told.
inline constexpr std::string_view kUnfinishedNote = "unfinished";

bool sniff_pftrace(std::span<const std::byte> head);
Result<profile::Profile> read_pftrace(Input input, const ReadOptions& options);
Result<void> write_pftrace(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
