#include "store/database.h"

#include <sqlite3.h>

#include <algorithm>
#include <string>

#include "store/fd_files.h"

namespace cprof::store {

// SQLite quotes names that it found in the file: one line all the same, and not a long one.
std::unexpected<Error> fail_sql(sqlite3* handle) {
  constexpr size_t kMostBytes = 200;
  if (!handle) return fail("out of memory", SQLITE_NOMEM);
  std::string message = std::string(sqlite3_errmsg(handle)).substr(0, kMostBytes);
  std::ranges::replace_if(message, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return fail(std::move(message), sqlite3_extended_errcode(handle));
}

bool is_busy(const Error& error) { return (error.code & 0xff) == SQLITE_BUSY; }

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::bind(int index, int64_t value) { bind_error_ |= sqlite3_bind_int64(statement_.get(), index, value); }
void Statement::bind(int index, double value) { bind_error_ |= sqlite3_bind_double(statement_.get(), index, value); }
void Statement::bind(int index, std::nullptr_t) { bind_error_ |= sqlite3_bind_null(statement_.get(), index); }
void Statement::bind(int index, std::string_view text) {
  const char* start = text.data() ? text.data() : "";
  bind_error_ |= sqlite3_bind_text64(statement_.get(), index, start, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

std::unexpected<Error> Statement::error() const { return fail_sql(sqlite3_db_handle(statement_.get())); }

Result<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) return error();
  const int status = sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  return error();
}

Result<void> Statement::run() {
  auto more = step();
  while (more && *more) more = step();
  if (!more) {
    auto failed = std::unexpected(more.error());
    reset();
    return failed;
  }
  reset();
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  bind_error_ = SQLITE_OK;
}

bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }
bool Statement::is_integer(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER; }
bool Statement::is_real(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_FLOAT; }
bool Statement::is_text(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_TEXT; }
int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::text(int column) const {
  const auto* start = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return start ? std::string_view(start, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)))
               : std::string_view();
}

void Database::Close::operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }

Result<Database> Database::open(const std::string& name, int flags, const char* vfs) {
  sqlite3* handle = nullptr;
  const int status = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
  Database database;
  database.handle_.reset(handle);
  if (status != SQLITE_OK) return fail_sql(handle);
  return database;
}

Result<Database> Database::open_memory() { return open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr); }

Result<Database> Database::open_fd(int fd, Access access) {
  const char* vfs = register_fd_files();
  if (!vfs) return fail("SQLite cannot be started");
  const bool is_read = access == Access::kRead;
  Database database = TRY(open(std::to_string(fd), is_read ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs));
  TRY(database.execute("PRAGMA temp_store = MEMORY;"));
  return database;
}

Result<Database> Database::open_path(const std::string& path) {
  return open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
}

Result<void> Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return fail_sql(handle_.get());
  return {};
}

bool Database::is_in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

Result<Statement> Database::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(handle_.get(), sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK)
    return fail_sql(handle_.get());
  return Statement(statement);
}

}  // namespace cprof::store
