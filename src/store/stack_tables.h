// Tables that are worked out from the stacks: the forest of call sites with inlined functions as nodes of their own,
// and call_tree(query) and function_totals(query), which sum the values that a query gives to call sites. docs/sql.md
// has their columns.
#pragma once

#include <sqlite3.h>

#include "base/result.h"
#include "store/stack_index.h"

namespace cprof::store {

// stacks must outlive the connection.
Result<void> add_stack_tables(sqlite3* db, StackIndexCache& stacks);

}  // namespace cprof::store
