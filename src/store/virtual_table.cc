#include "store/virtual_table.h"

#include <fmt/format.h>

namespace cprof::store {
namespace {

struct Table : sqlite3_vtab {
  std::shared_ptr<VirtualTable> implementation;
};

struct Cursor : sqlite3_vtab_cursor {
  std::unique_ptr<TableCursor> implementation;
};

int report(sqlite3_vtab* table, const Result<void>& result) {
  if (result) return SQLITE_OK;
  sqlite3_free(table->zErrMsg);
  table->zErrMsg = sqlite3_mprintf("%s", result.error().message.c_str());
  return SQLITE_ERROR;
}

int connect(sqlite3* db, void* owner, int, const char* const*, sqlite3_vtab** result, char** error) {
  auto& implementation = *static_cast<std::shared_ptr<VirtualTable>*>(owner);
  const int status = sqlite3_declare_vtab(db, fmt::format("CREATE TABLE x({})", implementation->columns()).c_str());
  if (status != SQLITE_OK) {
    *error = sqlite3_mprintf("%s", sqlite3_errmsg(db));
    return status;
  }
  sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
  auto table = std::make_unique<Table>();
  static_cast<sqlite3_vtab&>(*table) = {};
  table->implementation = implementation;
  *result = table.release();
  return SQLITE_OK;
}

int disconnect(sqlite3_vtab* table) {
  delete static_cast<Table*>(table);
  return SQLITE_OK;
}

int best_index(sqlite3_vtab* table, sqlite3_index_info* info) {
  return static_cast<Table*>(table)->implementation->plan(*info);
}

int open_cursor(sqlite3_vtab* table, sqlite3_vtab_cursor** result) {
  auto cursor = std::make_unique<Cursor>();
  static_cast<sqlite3_vtab_cursor&>(*cursor) = {};
  cursor->implementation = static_cast<Table*>(table)->implementation->open();
  *result = cursor.release();
  return SQLITE_OK;
}

int close_cursor(sqlite3_vtab_cursor* cursor) {
  delete static_cast<Cursor*>(cursor);
  return SQLITE_OK;
}

TableCursor& of(sqlite3_vtab_cursor* cursor) { return *static_cast<Cursor*>(cursor)->implementation; }

int filter(sqlite3_vtab_cursor* cursor, int plan, const char*, int count, sqlite3_value** arguments) {
  return report(cursor->pVtab, of(cursor).filter(plan, {arguments, static_cast<size_t>(count)}));
}

int next(sqlite3_vtab_cursor* cursor) { return report(cursor->pVtab, of(cursor).next()); }
int at_end(sqlite3_vtab_cursor* cursor) { return of(cursor).at_end(); }

int column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int index) {
  of(cursor).column(context, index);
  return SQLITE_OK;
}

int rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* result) {
  *result = of(cursor).rowid();
  return SQLITE_OK;
}

const sqlite3_module& module() {
  static const sqlite3_module kModule = [] {
    sqlite3_module m{};
    m.xConnect = connect;
    m.xBestIndex = best_index;
    m.xDisconnect = disconnect;
    m.xOpen = open_cursor;
    m.xClose = close_cursor;
    m.xFilter = filter;
    m.xNext = next;
    m.xEof = at_end;
    m.xColumn = column;
    m.xRowid = rowid;
    return m;
  }();
  return kModule;
}

}  // namespace

Result<void> add_table(sqlite3* db, const std::string& name, std::shared_ptr<VirtualTable> table) {
  auto* owner = new std::shared_ptr<VirtualTable>(std::move(table));
  auto destroy = [](void* pointer) { delete static_cast<std::shared_ptr<VirtualTable>*>(pointer); };
  // On failure SQLite has called destroy already.
  if (sqlite3_create_module_v2(db, name.c_str(), &module(), owner, destroy) != SQLITE_OK)
    return fail(fmt::format("{}: {}", name, sqlite3_errmsg(db)));
  return {};
}

bool take_equality(sqlite3_index_info& info, int column, int argument) {
  for (int i = 0; i < info.nConstraint; ++i) {
    const auto& constraint = info.aConstraint[i];
    if (!constraint.usable || constraint.iColumn != column || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    info.aConstraintUsage[i].argvIndex = argument;
    return true;
  }
  return false;
}

bool take_arguments(sqlite3_index_info& info, int first, int count) {
  for (int i = 0; i < count; ++i)
    if (!take_equality(info, first + i, i + 1)) return false;
  for (int i = 0; i < info.nConstraint; ++i)
    if (info.aConstraintUsage[i].argvIndex > 0) info.aConstraintUsage[i].omit = 1;
  return true;
}

}  // namespace cprof::store
