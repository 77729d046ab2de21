// Functions of SQL that need no table: demangle(), hash(), str_split(), sum_int(). docs/sql.md lists them.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cprof::store {

// demangle gives a name as people write it, or the same name when it is not mangled.
Result<void> add_scalar_functions(sqlite3* db, std::function<std::string(std::string_view)> demangle);

}  // namespace cprof::store
