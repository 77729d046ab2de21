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
// "frame;frame BEFORE AFTER", as FlameGraph's difffolded.pl writes and its flamegraph.pl reads it. A line that has two counts,
// in a file of nothing else, is read back as the metrics "before" and "after".
struct FoldedPair {
  profile::MetricId before, after;
  double scale = 1;  // of the values before
};
Result<void> write_folded_pairs(const profile::Profile& profile, const FoldedPair& pair, OutputFile& out);
Result<void> write_folded(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
