// FlameGraph's folded stacks: "root;...;leaf N", one stack a line. docs/formats/folded.md says what each part means.
#pragma once

#include "format/folded/folded_tree.h"
#include "format/format.h"
#include "format/values.h"

namespace cprof::format {

const FormatInfo& folded_format();

bool sniff_folded(std::span<const std::byte> head);
Result<profile::Profile> read_folded(Input input, const ReadOptions& options);
// What write_folded writes, as a tree.
FoldedTree fold(const profile::Profile& profile, const ValueChoice& choice, const WriteOptions& options);
Result<void> write_folded(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
