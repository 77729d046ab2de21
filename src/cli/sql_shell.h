// The interactive side of `cprof sql`: a line editor with history and completion, statements over several lines,
// commands that begin with a dot. Ctrl-C ends the statement that runs, or the line that is being typed.
#pragma once

#include "cli/sql_output.h"
#include "store/query_session.h"

namespace cprof::cli {

struct SqlSettings {
  SqlFormat format = SqlFormat::kTable;
  store::QueryLimits limits;
};

// Until .quit or the end of input; gives the exit status.
int run_sql_shell(store::QuerySession& session, SqlSettings settings);

// "-q: line 1, column 8: no such column: x"
std::string sql_error_text(std::string_view where, std::string_view script, const store::SqlError& error);

// The columns of the terminal on stdout; 0 when it is none.
size_t terminal_columns();

}  // namespace cprof::cli
