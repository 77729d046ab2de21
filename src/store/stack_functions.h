// The functions of SQL that read a stack: stack(callsite_id), leaf(), root(), contains(), matches(). docs/sql.md lists
// them.
#pragma once

#include <sqlite3.h>

#include "base/result.h"
#include "store/stack_index.h"

namespace cprof::store {

// stacks must outlive the connection.
Result<void> add_stack_functions(sqlite3* db, StackIndexCache& stacks);

}  // namespace cprof::store
