// The lines of source that a profile in one file carries along: those around what costs something, of files that debug info
// names. Bounded in number and size; what cannot be read is left out, as on a machine that has no sources. Used by the payload
// encoder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "page/line_tree.h"
#include "page/values.h"
#include "profile/profile.h"
#include "source/source_files.h"

namespace cprof::page {

struct SourcePart {
  std::string_view file;     // as debug info names it
  uint32_t first_line = 0;
  std::string text;          // whole lines, each with its '\n'
  bool is_changed = false;   // the file is newer than the recording
};

std::vector<SourcePart> source_parts(const profile::Profile& profile, const LineTree& tree, const PageValues& values,
                                     source::SourceFiles& files);

}  // namespace cprof::page
