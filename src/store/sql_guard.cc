#include "store/sql_guard.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>

namespace cprof::store {
namespace {

enum class Rule : uint8_t { kAlways, kTemporary, kNever };

struct ActionRow {
  int action;
  Rule rule;
  std::string_view name;
};

// SQLite itself writes sqlite_temp_master by INSERT, UPDATE and DELETE when a temporary object is made or dropped.
constexpr ActionRow kActions[] = {
    {SQLITE_SELECT, Rule::kAlways, "SELECT"},
    {SQLITE_READ, Rule::kAlways, "reading"},
    {SQLITE_FUNCTION, Rule::kAlways, "functions"},
    {SQLITE_RECURSIVE, Rule::kAlways, "WITH RECURSIVE"},
    {SQLITE_CREATE_TEMP_TABLE, Rule::kAlways, "CREATE TABLE"},
    {SQLITE_CREATE_TEMP_VIEW, Rule::kAlways, "CREATE VIEW"},
    {SQLITE_CREATE_TEMP_INDEX, Rule::kAlways, "CREATE INDEX"},
    {SQLITE_DROP_TEMP_TABLE, Rule::kAlways, "DROP TABLE"},
    {SQLITE_DROP_TEMP_VIEW, Rule::kAlways, "DROP VIEW"},
    {SQLITE_DROP_TEMP_INDEX, Rule::kAlways, "DROP INDEX"},
    {SQLITE_INSERT, Rule::kTemporary, "INSERT"},
    {SQLITE_UPDATE, Rule::kTemporary, "UPDATE"},
    {SQLITE_DELETE, Rule::kTemporary, "DELETE"},
    {SQLITE_REINDEX, Rule::kTemporary, "CREATE INDEX"},
    {SQLITE_CREATE_TABLE, Rule::kNever, "CREATE TABLE"},
    {SQLITE_CREATE_VIEW, Rule::kNever, "CREATE VIEW"},
    {SQLITE_CREATE_INDEX, Rule::kNever, "CREATE INDEX"},
    {SQLITE_CREATE_TRIGGER, Rule::kNever, "CREATE TRIGGER"},
    {SQLITE_CREATE_TEMP_TRIGGER, Rule::kNever, "CREATE TRIGGER"},
    {SQLITE_CREATE_VTABLE, Rule::kNever, "CREATE VIRTUAL TABLE"},
    {SQLITE_DROP_TABLE, Rule::kNever, "DROP TABLE"},
    {SQLITE_DROP_VIEW, Rule::kNever, "DROP VIEW"},
    {SQLITE_DROP_INDEX, Rule::kNever, "DROP INDEX"},
    {SQLITE_DROP_TRIGGER, Rule::kNever, "DROP TRIGGER"},
    {SQLITE_DROP_TEMP_TRIGGER, Rule::kNever, "DROP TRIGGER"},
    {SQLITE_DROP_VTABLE, Rule::kNever, "DROP TABLE"},
    {SQLITE_ALTER_TABLE, Rule::kNever, "ALTER TABLE"},
    {SQLITE_ANALYZE, Rule::kNever, "ANALYZE"},
    {SQLITE_ATTACH, Rule::kNever, "ATTACH"},
    {SQLITE_DETACH, Rule::kNever, "DETACH"},
    {SQLITE_TRANSACTION, Rule::kNever, "transactions"},
    {SQLITE_SAVEPOINT, Rule::kNever, "SAVEPOINT"},
};

// Those that only tell something.
constexpr std::array<std::string_view, 10> kPragmas = {"table_info",  "table_xinfo",  "table_list",    "index_list",
                                                       "index_info",  "index_xinfo",  "function_list", "module_list",
                                                       "pragma_list", "database_list"};

}  // namespace

std::string refused_action(int action, std::string_view first, std::string_view second, std::string_view schema) {
  if (action == SQLITE_PRAGMA)
    return std::ranges::find(kPragmas, first) != kPragmas.end() ? ""
                                                                : fmt::format("PRAGMA {} is not allowed here", first);
  if (action == SQLITE_FUNCTION && second == "load_extension") return "load_extension is not allowed here";
  // Asked while the columns of a virtual table are taken in. SQLite itself refuses it to a script.
  if (action == SQLITE_UPDATE && first == "sqlite_master" && schema == "main") return "";
  const auto* row = std::ranges::find(kActions, action, &ActionRow::action);
  if (row == std::end(kActions)) return "this kind of statement is not allowed here";
  if (row->rule == Rule::kAlways || (row->rule == Rule::kTemporary && schema == "temp")) return "";
  return fmt::format("the profile is read-only: {} is refused", row->name);
}

}  // namespace cprof::store
