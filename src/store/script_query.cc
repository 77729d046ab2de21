#include "store/script_query.h"

namespace cprof::store {

Result<ScriptQuery> ScriptQuery::prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()), &statement, &rest) != SQLITE_OK)
    return fail(sqlite3_errmsg(db));
  ScriptQuery query(statement);
  if (!statement) return fail("the query is empty");
  if (std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
    return fail("the query is more than one statement");
  if (!sqlite3_stmt_readonly(statement) || query.columns() == 0) return fail("the query is no SELECT");
  return query;
}

std::string ScriptQuery::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
}

Result<bool> ScriptQuery::step() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  return fail(sqlite3_errmsg(sqlite3_db_handle(statement_)));
}

}  // namespace cprof::store
