// A prepared statement of ours that ends with its scope. Used where this folder asks its own database.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cprof::store {

class SqlStatement {
 public:
  static Result<SqlStatement> prepare(sqlite3* db, const std::string& sql);

  SqlStatement(SqlStatement&& other) noexcept : statement_(other.statement_) { other.statement_ = nullptr; }
  SqlStatement& operator=(SqlStatement&& other) noexcept;
  ~SqlStatement() { sqlite3_finalize(statement_); }

  Result<bool> step();  // false: no more rows
  int columns() const { return sqlite3_column_count(statement_); }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  int64_t integer_or(int column, int64_t otherwise) const { return is_null(column) ? otherwise : integer(column); }
  std::string_view text(int column) const;  // valid until the next step
  sqlite3_stmt* get() const { return statement_; }

 private:
  explicit SqlStatement(sqlite3_stmt* statement) : statement_(statement) {}
  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace cprof::store
