// A static flame graph as one SVG file: no script, names as titles and as text that a browser's search finds.
// docs/formats/svg.md. Written only.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& svg_format();

Result<void> write_svg(const profile::Profile& profile, OutputFile& out, const WriteOptions& options);

}  // namespace cprof::format
