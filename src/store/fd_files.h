// A file system for SQLite in which the name of a file is the number of an open descriptor. Used by database.cc. Reads
// and writes in place; no locks, no journals, no other file is ever opened or removed.
#pragma once

namespace cprof::store {

// The name to give to sqlite3_open_v2.
const char* register_fd_files();

}  // namespace cprof::store
