// The text profiles: heap, growth, fragmentation, contention, threads, counts, and names in front of any of them. Used by
// gperftools.cc.
#pragma once

#include <string_view>

#include "format/gperftools/legacy_profile.h"
#include "format/gperftools/legacy_stream.h"

namespace cprof::format {

// Empty lines, comments and messages of the program: none of them is the header.
bool is_before_legacy_header(std::string_view line);
// Whether a text whose first other line is this one is such a profile.
bool is_legacy_header(std::string_view line);

Result<void> read_legacy_text(LegacyStream& stream, LegacyProfile& profile);
// What follows the samples of every kind: the memory map, after sections that are not known.
Result<void> read_legacy_map(LegacyStream& stream, LegacyProfile& profile);
// What follows the samples of a Java agent: "0x1f function (file:line)".
Result<void> read_java_names(LegacyStream& stream, LegacyProfile& profile);

}  // namespace cprof::format
