// The tables and views of a .cprof recording: one list, from which the DDL and docs/schema.md are both made. Used by the
// writer, the reader and whoever answers SQL. Pure. Names, columns and values are Perfetto's where it has them; tables
// whose name begins with cprof_ are how the recording keeps what those views show.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cprof::store {

inline constexpr int32_t kApplicationId = 0x63707266;  // "cprf": pragma application_id
inline constexpr int32_t kSchemaVersion = 1;           // pragma user_version; a reader refuses newer ones

// Rows of stack_profile_callsite and cprof_location for a sample without a stack, there only when one has none. It is
// what an invalid id is in the model.
inline constexpr int64_t kUnknownId = 0xffffffff;

// A thread's own track, and track N of cprof_track; 4N+2 and 4N+3 are left for lanes that are derived.
inline constexpr int64_t kTrackStride = 4;
constexpr int64_t thread_track_id(int64_t utid) { return utid * kTrackStride; }
constexpr int64_t own_track_id(int64_t track) { return track * kTrackStride + 1; }

struct Column {
  std::string_view name;
  std::string_view type;     // "ID": INTEGER PRIMARY KEY; else as SQLite writes it, with its constraints
  std::string_view meaning;  // one sentence
};

struct TableDef {
  std::string_view name;
  std::string_view meaning;  // one sentence
  std::vector<Column> columns;
  std::string_view view = {};   // what a view selects, its columns in the order above; empty: a table
  std::string_view index = {};  // "column, column": an index over them; empty: none
};

// In an order in which a view comes after all that it selects from.
std::span<const TableDef> all_tables();
const TableDef* find_table(std::string_view name);

std::string ddl_of(const TableDef& table);
std::string schema_ddl();   // of all of them, and the pragmas that mark the file
std::string schema_page();  // docs/schema.md

// For tables: their own columns, in order, generated ones left out.
std::string insert_sql(const TableDef& table);  // a row with the same id is replaced
std::string select_sql(const TableDef& table);  // in the order of the rows

}  // namespace cprof::store
