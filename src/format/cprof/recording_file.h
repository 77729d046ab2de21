// A recording's bytes as a database that can be read: a pipe or a packed file is first put into an unnamed file, and what
// a killed writer left half done is undone in a copy. Used by the reader. The input itself is never changed.
#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "format/format.h"

namespace cprof::format {

// The descriptor to read the database from. It holds a shared lock, as SQLite's own readers do, until it is closed.
Result<Fd> open_recording(Input input, const ReadOptions& options);

}  // namespace cprof::format
