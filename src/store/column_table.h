// A table of SQL over the rows of all profiles of a session, column by column, without a copy. Equality on a column of
// integers is a look-up: by the row's number where the column is the id, else in an index that is made on first use.
// The definitions are in profile_tables.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/profile_set.h"
#include "store/virtual_table.h"

namespace cprof::store {

struct Cell {
  enum class Type : uint8_t { kNull, kInteger, kReal, kText };
  Type type = Type::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view text = {};  // lives as long as the profile

  static Cell of(int64_t value) { return {Type::kInteger, value}; }
  static Cell of_address(uint64_t value) { return of(static_cast<int64_t>(value)); }
  static Cell of_real(double value) { return {Type::kReal, 0, value}; }
  static Cell of(std::string_view value) { return {Type::kText, 0, 0, value}; }
  static Cell known(std::string_view value) { return value.empty() ? Cell{} : of(value); }
  static Cell known_time(uint64_t ns) { return ns == 0 ? Cell{} : of_address(ns); }
};

struct ColumnDef {
  std::string_view name;
  std::string_view type;                                       // "INTEGER", "REAL", "TEXT"
  Cell (*get)(ProfileSource& source, uint32_t row) = nullptr;  // null: the id, which is the number of the row
};

struct ColumnTableDef {
  std::string_view name;
  std::vector<ColumnDef> columns;
  uint32_t (*rows)(ProfileSource& source);
};

Result<void> add_column_table(sqlite3* db, const ColumnTableDef& definition, const ProfileSet& profiles);

}  // namespace cprof::store
