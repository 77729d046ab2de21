// Perfetto's protobuf trace, written directly: tracks of processes and threads, stackdiff slices and samples with
// interned call stacks. docs/formats/pftrace.md lists the rules that its importer demands and these files keep.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& pftrace_format();

bool sniff_pftrace(std::span<const std::byte> head);
Result<void> write_pftrace(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
