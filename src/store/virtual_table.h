// A table of SQL whose rows come from C++: SQLite's interface for virtual tables as two small classes. Used by the
// tables of this folder that are worked out on demand. Read-only; eponymous, so nothing is created in any schema.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace cprof::store {

class TableCursor {
 public:
  virtual ~TableCursor() = default;

  // Begins a scan. plan is what VirtualTable::plan() chose, arguments the values of the constraints it took.
  virtual Result<void> filter(int plan, std::span<sqlite3_value*> arguments) = 0;
  virtual Result<void> next() = 0;
  virtual bool at_end() const = 0;
  virtual void column(sqlite3_context* context, int column) const = 0;
  virtual int64_t rowid() const = 0;
};

class VirtualTable {
 public:
  virtual ~VirtualTable() = default;

  virtual std::string columns() const = 0;  // "id INT, name TEXT, query TEXT HIDDEN"
  // What of the constraints the scan will use: sets argvIndex, omit, idxNum, cost. SQLITE_CONSTRAINT: it cannot run so.
  virtual int plan(sqlite3_index_info& info) const = 0;
  virtual std::unique_ptr<TableCursor> open() = 0;
};

// The table lives as long as the connection.
Result<void> add_table(sqlite3* db, const std::string& name, std::shared_ptr<VirtualTable> table);

// For plan(): takes the first usable constraint `column = value` as argument `argument` (from 1).
bool take_equality(sqlite3_index_info& info, int column, int argument);
// For functions with arguments: the hidden columns from `first` on must all be given, in this order; false else.
bool take_arguments(sqlite3_index_info& info, int first, int count);

}  // namespace cprof::store
