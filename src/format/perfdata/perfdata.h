// perf.data: what `perf record` writes, file form and pipe form, as a source of events; and the raw capture of our own
// recordings (raw_writer.h), which is the pipe form with a few records that perf skips.
#pragma once

#include "format/format.h"

namespace cprof::format {

const FormatInfo& perfdata_format();

}  // namespace cprof::format
