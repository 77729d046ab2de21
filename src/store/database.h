// SQLite as this module uses it: errors as values, statements that reset themselves. Used by the writer, the reader and
// the SQL shell; one thread at a time. Never touches a file beside the one it was given: a recording is read and written
// through its descriptor, whatever became of its name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace cprof::store {

class Statement {
 public:
  // Binds all of them and runs the statement to its end: for what gives no rows.
  template <typename... Values>
  Result<void> put(const Values&... values) {
    int index = 0;
    (bind(++index, values), ...);
    return run();
  }

  void bind(int index, int64_t value);
  void bind(int index, double value);
  void bind(int index, std::string_view text);  // any bytes; not copied: they must stay until the statement has run
  void bind(int index, std::nullptr_t);
  void bind(int index, std::optional<int64_t> value) {
    if (value) bind(index, *value);
    else bind(index, nullptr);
  }

  Result<bool> step();  // true: there is a row
  Result<void> run();   // to the end, then ready for the next time
  void reset();

  // Of the row, columns from 0.
  bool is_null(int column) const;
  bool is_integer(int column) const;
  bool is_real(int column) const;
  bool is_text(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;  // until the next step

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  std::unexpected<Error> error() const;

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

class Database {
 public:
  enum class Access : uint8_t { kRead, kWrite };

  // In memory.
  static Result<Database> open_memory();
  // The file behind a descriptor, which stays the caller's and must stay open. Without locks and without a journal.
  static Result<Database> open_fd(int fd, Access access);
  // By name, with SQLite's own locks and journal; made when it is not there.
  static Result<Database> open_path(const std::string& path);

  Result<void> execute(const std::string& sql);  // one or more statements that give no rows
  Result<Statement> prepare(const std::string& sql);
  bool is_in_transaction() const;
  sqlite3* handle() const { return handle_.get(); }

 private:
  struct Close {
    void operator()(sqlite3* handle) const;
  };
  static Result<Database> open(const std::string& name, int flags, const char* vfs);

  std::unique_ptr<sqlite3, Close> handle_;
};

// Another program holds a lock that the database needs.
bool is_busy(const Error& error);
// What SQLite says of its last failure, with its number as the code.
std::unexpected<Error> fail_sql(sqlite3* handle);

}  // namespace cprof::store
