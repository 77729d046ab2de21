// A script is cut into statements, each is rewritten (rewriter.h) and runs on one connection. The profiles' own tables
// are in the schema main; views, and all that a script makes, in temp. Two callbacks keep the rules: the authorizer
// says what a statement may do at all, the progress handler ends one that was interrupted or takes too long.
#include "store/query_session.h"

#include <fmt/format.h>

#include "store/column_table.h"
#include "store/modules.h"
#include "store/profile_tables.h"
#include "store/scalar_functions.h"
#include "store/script_query.h"
#include "store/sql_guard.h"
#include "store/stack_functions.h"
#include "store/stack_tables.h"

namespace cprof::store {
namespace {

constexpr int kStepsBetweenChecks = 2000;

std::string_view text_or_empty(const char* text) { return text ? text : std::string_view(); }

SqlValue value_at(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return sqlite3_column_int64(statement, column);
    case SQLITE_FLOAT: return sqlite3_column_double(statement, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string_view(text ? text : "", static_cast<size_t>(sqlite3_column_bytes(statement, column)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement, column));
      return SqlBlob{{bytes, static_cast<size_t>(sqlite3_column_bytes(statement, column))}};
    }
    default: return std::monostate();
  }
}

std::unexpected<SqlError> at(size_t offset, const Error& error) {
  return std::unexpected(SqlError{error.message, offset});
}

// A module's own statements give no rows to anybody.
class NoSink final : public RowSink {
 public:
  Result<void> begin(std::span<const std::string>) override { return {}; }
  Result<void> row(std::span<const SqlValue>) override { return {}; }
  Result<void> end(bool) override { return {}; }
};

struct Finalizer {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

}  // namespace

Result<std::unique_ptr<QuerySession>> QuerySession::create(Demangle demangle) {
  sqlite3* db = nullptr;
  if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr) !=
      SQLITE_OK) {
    sqlite3_close(db);
    return fail("SQLite cannot open a database in memory");
  }
  std::unique_ptr<QuerySession> session(new QuerySession(db));
  TRY(session->add_builtins(std::move(demangle)));
  return session;
}

QuerySession::~QuerySession() {
  functions_.clear();
  sqlite3_close_v2(db_);
}

SqlError QuerySession::error_at(size_t offset) const {
  const std::string message = sqlite3_errmsg(db_);
  const bool is_late = limits_.seconds > 0 && std::chrono::steady_clock::now() >= deadline_;
  if (message == "interrupted" && !was_interrupted() && is_late)
    return {fmt::format("stopped after {:g} s; a longer time limit lets it go on", limits_.seconds), offset};
  return {refusal_.empty() ? message : refusal_, offset};
}

int QuerySession::authorize(void* self, int action, const char* first, const char* second, const char* schema,
                            const char*) {
  auto& session = *static_cast<QuerySession*>(self);
  if (!session.is_guarded_) return SQLITE_OK;
  std::string refusal = refused_action(action, text_or_empty(first), text_or_empty(second), text_or_empty(schema));
  if (refusal.empty()) return SQLITE_OK;
  if (session.refusal_.empty()) session.refusal_ = std::move(refusal);
  return SQLITE_DENY;
}

int QuerySession::on_progress(void* self) {
  auto& session = *static_cast<QuerySession*>(self);
  if (session.is_interrupted_.load(std::memory_order_relaxed)) return 1;
  return session.limits_.seconds > 0 && std::chrono::steady_clock::now() >= session.deadline_;
}

void QuerySession::add_profile(std::shared_ptr<const profile::Profile> profile, std::string_view name) {
  CPROF_CHECK(!has_run_);
  profiles_.add(std::move(profile), name);
}

SqlResult<void> QuerySession::run(std::string_view script, const QueryLimits& limits, RowSink& sink) {
  limits_ = limits;
  is_interrupted_ = false;
  has_run_ = true;
  is_guarded_ = true;
  auto done = run_script(script, sink);
  is_guarded_ = false;
  return done;
}

SqlResult<void> QuerySession::run_script(std::string_view script, RowSink& sink) {
  for (const ScriptStatement& statement : split_statements(script).statements) TRY(run_statement(statement, sink));
  return {};
}

SqlResult<void> QuerySession::run_statement(const ScriptStatement& statement, RowSink& sink) {
  refusal_.clear();
  deadline_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                     std::chrono::duration<double>(limits_.seconds));
  const Rewritten rewritten = TRY(rewriter_.rewrite(statement));
  switch (rewritten.kind) {
    case Rewritten::Kind::kNothing: return {};
    case Rewritten::Kind::kInclude: return include(rewritten.module, statement.offset);
    case Rewritten::Kind::kSql: return execute(rewritten, statement.offset, sink);
    case Rewritten::Kind::kFunction: break;
  }
  if (auto defined = functions_.define(rewritten.function); !defined) {
    const int error_offset = sqlite3_error_offset(db_);
    return at(error_offset < 0 ? statement.offset : rewritten.origin_of(static_cast<size_t>(error_offset)),
              defined.error());
  }
  return {};
}

SqlResult<void> QuerySession::include(std::string_view module, size_t offset) {
  auto modules = find_modules(module);
  if (!modules) return at(offset, modules.error());
  for (const SqlModule* row : *modules) {
    if (!included_.insert(std::string(row->name)).second) continue;
    for (std::string_view other : row->includes) TRY(include(other, offset));
    NoSink nowhere;
    if (auto done = run_script(row->script, nowhere); !done)
      return std::unexpected(SqlError{fmt::format("module {}: {}", row->name, done.error().message), offset});
  }
  return {};
}

SqlResult<void> QuerySession::execute(const Rewritten& statement, size_t offset, RowSink& sink) {
  for (const std::string& sql : statement.before)
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
      return std::unexpected(error_at(offset));
  sqlite3_stmt* raw = nullptr;
  const int status =
      sqlite3_prepare_v3(db_, statement.sql.c_str(), static_cast<int>(statement.sql.size()), 0, &raw, nullptr);
  const std::unique_ptr<sqlite3_stmt, Finalizer> prepared(raw);
  if (status != SQLITE_OK) {
    const int error_offset = sqlite3_error_offset(db_);
    return std::unexpected(
        error_at(error_offset < 0 ? offset : statement.origin_of(static_cast<size_t>(error_offset))));
  }
  if (!raw) return {};
  if (sqlite3_bind_parameter_count(raw) > 0) {
    const char* name = sqlite3_bind_parameter_name(raw, 1);
    return std::unexpected(SqlError{fmt::format("the parameter {} has no value here", name ? name : "?"), offset});
  }
  return step_through(raw, offset, sink);
}

SqlResult<void> QuerySession::step_through(sqlite3_stmt* statement, size_t offset, RowSink& sink) {
  const int count = sqlite3_column_count(statement);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.emplace_back(text_or_empty(sqlite3_column_name(statement, i)));
  std::vector<SqlValue> values(names.size());
  auto pass_on = [&](const Result<void>& result) -> SqlResult<void> {
    if (!result) return at(offset, result.error());
    return {};
  };
  bool has_begun = false;
  auto begin = [&]() -> SqlResult<void> {
    if (has_begun || count == 0) return {};
    has_begun = true;
    return pass_on(sink.begin(names));
  };
  for (uint64_t rows = 0;; ++rows) {
    const int status = sqlite3_step(statement);
    if (status != SQLITE_ROW && status != SQLITE_DONE) return std::unexpected(error_at(offset));
    TRY(begin());
    const bool is_cut = status == SQLITE_ROW && limits_.rows > 0 && rows == limits_.rows;
    if (status == SQLITE_DONE || is_cut) return count == 0 ? SqlResult<void>() : pass_on(sink.end(is_cut));
    for (int i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value_at(statement, i);
    TRY(pass_on(sink.row(values)));
  }
}

Result<void> QuerySession::add_builtins(Demangle demangle) {
  sqlite3_limit(db_, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_set_authorizer(db_, authorize, this);
  sqlite3_progress_handler(db_, kStepsBetweenChecks, on_progress, this);
  TRY(add_scalar_functions(db_, std::move(demangle)));
  TRY(add_stack_functions(db_, stacks_));
  TRY(add_stack_tables(db_, stacks_));
  for (const ColumnTableDef& table : profile_tables()) TRY(add_column_table(db_, table, profiles_));
  if (auto done = include(kPrelude, 0); !done) return fail(done.error().message);
  return {};
}

std::vector<std::string> QuerySession::tables() const {
  std::set<std::string> names{"call_tree", "function_totals"};
  for (const ColumnTableDef& table : profile_tables()) names.insert(std::string(table.name));
  auto query = ScriptQuery::prepare(
      db_, "SELECT name FROM sqlite_temp_schema WHERE type IN ('table', 'view') AND name NOT LIKE '\\_%' ESCAPE '\\'");
  for (auto row = query ? query->step() : Result<bool>(false); row && *row; row = query->step())
    names.insert(query->text(0));
  return {names.begin(), names.end()};
}

std::vector<std::pair<std::string, std::string>> QuerySession::columns(const std::string& table) const {
  std::vector<std::pair<std::string, std::string>> columns;
  auto query = ScriptQuery::prepare(db_, "SELECT name, type FROM pragma_table_info($table)");
  if (query) sqlite3_bind_text(query->get(), 1, table.c_str(), -1, SQLITE_TRANSIENT);
  for (auto row = query ? query->step() : Result<bool>(false); row && *row; row = query->step())
    columns.emplace_back(query->text(0), query->text(1));
  return columns;
}

std::vector<std::string> QuerySession::names() const {
  std::set<std::string> names;
  for (const std::string& macro : rewriter_.macro_names()) names.insert(macro + "!");
  for (const std::string& table : tables()) {
    names.insert(table);
    for (const auto& [column, type] : columns(table)) names.insert(column);
  }
  return {names.begin(), names.end()};
}

}  // namespace cprof::store
