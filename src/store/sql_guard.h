// What a script may do: read everything, make and fill temporary tables and views, nothing else. The rules behind
// SQLite's authorizer, as one table. Pure.
#pragma once

#include <string>
#include <string_view>

namespace cprof::store {

// Empty: allowed. Else what is refused, for the error: "the profile is read-only: INSERT". The arguments are those of
// sqlite3_set_authorizer's callback; null ones are empty.
std::string refused_action(int action, std::string_view first, std::string_view second, std::string_view schema);

}  // namespace cprof::store
