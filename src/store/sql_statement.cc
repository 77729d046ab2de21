#include "store/sql_statement.h"

#include <utility>

namespace cprof::store {

Result<SqlStatement> SqlStatement::prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK)
    return fail(sqlite3_errmsg(db));
  return SqlStatement(statement);
}

SqlStatement& SqlStatement::operator=(SqlStatement&& other) noexcept {
  std::swap(statement_, other.statement_);
  return *this;
}

Result<bool> SqlStatement::step() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  return fail(sqlite3_errmsg(sqlite3_db_handle(statement_)));
}

std::string_view SqlStatement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column))) : std::string_view();
}

}  // namespace cprof::store
