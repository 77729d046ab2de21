// Profiles as tables of SQL: an SQLite connection that holds one or more of them, with the functions, views and
// statements of docs/sql.md on top. Used by `cprof sql` and the page's server. Profiles cannot be changed through it;
// what a script creates is temporary. One thread, but for interrupt(). Never prints.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "store/profile_set.h"
#include "store/rewriter.h"
#include "store/stack_index.h"
#include "store/user_functions.h"

namespace cprof::store {

struct SqlBlob {
  std::span<const std::byte> bytes;
};
using SqlValue = std::variant<std::monostate, int64_t, double, std::string_view, SqlBlob>;

// Where the rows of each statement go. Views are valid during the call.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual Result<void> begin(std::span<const std::string> columns) = 0;
  virtual Result<void> row(std::span<const SqlValue> values) = 0;
  virtual Result<void> end(bool was_cut) = 0;  // was_cut: there are more rows than the limit
};

struct QueryLimits {
  uint64_t rows = 0;   // of each statement; 0: all
  double seconds = 0;  // of each statement; 0: no limit
};

class QuerySession {
 public:
  using Demangle = std::function<std::string(std::string_view)>;

  // An empty database in memory.
  static Result<std::unique_ptr<QuerySession>> create(Demangle demangle);
  ~QuerySession();
  QuerySession(const QuerySession&) = delete;
  QuerySession& operator=(const QuerySession&) = delete;

  // name: the file's, as given; the profile's scope is made of it.
  // All of them come before the first run(). Several sessions may share a profile.
  void add_profile(std::shared_ptr<const profile::Profile> profile, std::string_view name);
  void add_profile(profile::Profile profile, std::string_view name) {
    add_profile(std::make_shared<const profile::Profile>(std::move(profile)), name);
  }

  // All statements, one after the other, until one fails. The error's offset is in the script.
  SqlResult<void> run(std::string_view script, const QueryLimits& limits, RowSink& sink);

  // Ends the statement that runs. From any thread and from a signal handler.
  void interrupt() noexcept { is_interrupted_.store(true, std::memory_order_relaxed); }
  // Whether the last error was that.
  bool was_interrupted() const { return is_interrupted_.load(std::memory_order_relaxed); }

  // What a script may name: tables, views, columns, macros.
  std::vector<std::string> names() const;
  std::vector<std::string> tables() const;  // and views; those whose name begins with _ are left out
  std::vector<std::pair<std::string, std::string>> columns(const std::string& table) const;  // with their types

 private:
  explicit QuerySession(sqlite3* db) : db_(db), functions_(db), stacks_(profiles_) {}

  Result<void> add_builtins(Demangle demangle);
  SqlResult<void> run_script(std::string_view script, RowSink& sink);
  SqlResult<void> run_statement(const ScriptStatement& statement, RowSink& sink);
  SqlResult<void> include(std::string_view module, size_t offset);
  SqlResult<void> execute(const Rewritten& statement, size_t offset, RowSink& sink);
  SqlResult<void> step_through(sqlite3_stmt* statement, size_t offset, RowSink& sink);
  SqlError error_at(size_t offset) const;
  static int authorize(void* self, int action, const char* first, const char* second, const char* schema, const char*);
  static int on_progress(void* self);

  sqlite3* db_ = nullptr;
  Rewriter rewriter_;
  UserFunctions functions_;
  ProfileSet profiles_;
  StackIndexCache stacks_;
  std::set<std::string, std::less<>> included_;
  QueryLimits limits_;
  std::chrono::steady_clock::time_point deadline_;
  std::atomic<bool> is_interrupted_ = false;
  bool is_guarded_ = false, has_run_ = false;
  std::string refusal_;  // what the guard said no to
};

}  // namespace cprof::store
