// A SELECT that a script handed over, as the body of a function or as the argument of one: prepared on the session's
// own connection, so that what holds for the script holds for it. (Statement in database.h is for what this folder
// writes.)
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cprof::store {

class ScriptQuery {
 public:
  static Result<ScriptQuery> prepare(sqlite3* db, const std::string& sql);

  ScriptQuery(ScriptQuery&& other) noexcept : statement_(other.statement_) { other.statement_ = nullptr; }
  ScriptQuery& operator=(ScriptQuery&&) = delete;
  ~ScriptQuery() { sqlite3_finalize(statement_); }

  Result<bool> step();  // false: no more rows
  int columns() const { return sqlite3_column_count(statement_); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;
  sqlite3_stmt* get() const { return statement_; }

 private:
  explicit ScriptQuery(sqlite3_stmt* statement) : statement_(statement) {}
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace cprof::store
