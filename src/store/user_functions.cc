#include "store/user_functions.h"

#include <fmt/format.h>

#include <vector>

#include "store/script_query.h"
#include "store/virtual_table.h"

namespace cprof::store {
namespace {

constexpr int kMaxDepth = 50;

// The statement has "$x" where the function has the argument x; an argument that it does not use is left out.
void bind_argument(sqlite3_stmt* statement, const std::string& name, sqlite3_value* value) {
  const int index = sqlite3_bind_parameter_index(statement, ("$" + name).c_str());
  if (index > 0) sqlite3_bind_value(statement, index, value);
}

Result<void> check_parameters(sqlite3_stmt* statement, const FunctionDefinition& definition) {
  for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
    const char* name = sqlite3_bind_parameter_name(statement, i);
    bool is_known = false;
    for (const std::string& argument : definition.arguments) is_known |= name && "$" + argument == name;
    if (!is_known) return fail(fmt::format("{}: no argument '{}'", definition.name, name ? name : "?"));
  }
  return {};
}

class StatementCursor final : public TableCursor {
 public:
  StatementCursor(sqlite3* db, const FunctionDefinition& definition) : db_(db), definition_(definition) {}

  Result<void> filter(int, std::span<sqlite3_value*> arguments) override {
    statement_ = std::make_unique<ScriptQuery>(TRY(ScriptQuery::prepare(db_, definition_.body)));
    for (size_t i = 0; i < arguments.size(); ++i)
      bind_argument(statement_->get(), definition_.arguments[i], arguments[i]);
    row_ = 0;
    return next();
  }
  Result<void> next() override {
    ++row_;
    is_at_end_ = !TRY(statement_->step());
    return {};
  }
  bool at_end() const override { return is_at_end_; }
  void column(sqlite3_context* context, int column) const override {
    const auto columns = static_cast<int>(definition_.columns.size());
    if (column < columns && column < statement_->columns())
      sqlite3_result_value(context, sqlite3_column_value(statement_->get(), column));
    else if (column >= columns)  // a hidden one: the argument itself
      sqlite3_result_null(context);
  }
  int64_t rowid() const override { return row_; }

 private:
  sqlite3* db_;
  const FunctionDefinition& definition_;
  std::unique_ptr<ScriptQuery> statement_;
  int64_t row_ = 0;
  bool is_at_end_ = true;
};

class StatementTable final : public VirtualTable {
 public:
  StatementTable(sqlite3* db, FunctionDefinition definition) : db_(db), definition_(std::move(definition)) {}

  std::string columns() const override {
    std::string text;
    for (const std::string& column : definition_.columns)
      text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", column);
    for (const std::string& argument : definition_.arguments) text += fmt::format(", \"${}\" HIDDEN", argument);
    return text;
  }
  int plan(sqlite3_index_info& info) const override {
    info.estimatedCost = 1000;
    return take_arguments(info, static_cast<int>(definition_.columns.size()),
                          static_cast<int>(definition_.arguments.size()))
               ? SQLITE_OK
               : SQLITE_CONSTRAINT;
  }
  std::unique_ptr<TableCursor> open() override { return std::make_unique<StatementCursor>(db_, definition_); }

 private:
  sqlite3* db_;
  FunctionDefinition definition_;
};

}  // namespace

class UserFunctions::Scalar {
 public:
  Scalar(UserFunctions& owner, FunctionDefinition definition, ScriptQuery statement)
      : owner_(owner), definition_(std::move(definition)), statement_(std::move(statement)) {}

  static void call(sqlite3_context* context, int count, sqlite3_value** arguments) {
    static_cast<Scalar*>(sqlite3_user_data(context))->run(context, {arguments, static_cast<size_t>(count)});
  }

 private:
  void run(sqlite3_context* context, std::span<sqlite3_value*> arguments) {
    if (owner_.depth_ >= kMaxDepth)
      return report(context,
                    fmt::format("{}: functions call functions more than {} deep", definition_.name, kMaxDepth));
    ++owner_.depth_;
    auto done = is_running_ ? run_nested(context, arguments) : run_on(statement_, context, arguments);
    --owner_.depth_;
    if (!done) report(context, done.error().message);
  }

  // The function calls itself: the outer call's statement is in the middle of its row.
  Result<void> run_nested(sqlite3_context* context, std::span<sqlite3_value*> arguments) {
    ScriptQuery own = TRY(ScriptQuery::prepare(owner_.db_, definition_.body));
    return run_on(own, context, arguments);
  }

  Result<void> run_on(ScriptQuery& statement, sqlite3_context* context, std::span<sqlite3_value*> arguments) {
    const bool was_running = is_running_;
    is_running_ = true;
    for (size_t i = 0; i < arguments.size(); ++i)
      bind_argument(statement.get(), definition_.arguments[i], arguments[i]);
    auto row = statement.step();
    if (row && *row) sqlite3_result_value(context, sqlite3_column_value(statement.get(), 0));
    sqlite3_reset(statement.get());
    is_running_ = was_running;
    TRY(row);
    return {};
  }

  static void report(sqlite3_context* context, const std::string& message) {
    sqlite3_result_error(context, message.c_str(), static_cast<int>(message.size()));
  }

  UserFunctions& owner_;
  FunctionDefinition definition_;
  ScriptQuery statement_;
  bool is_running_ = false;
};

Result<void> UserFunctions::define(FunctionDefinition definition) {
  if (definition.columns.empty()) return define_scalar(std::move(definition));
  ScriptQuery statement = TRY(ScriptQuery::prepare(db_, definition.body));
  TRY(check_parameters(statement.get(), definition));
  if (statement.columns() != static_cast<int>(definition.columns.size()))
    return fail(fmt::format("{}: RETURNS TABLE names {} columns, its SELECT has {}", definition.name,
                            definition.columns.size(), statement.columns()));
  const std::string name = definition.name;
  return add_table(db_, name, std::make_shared<StatementTable>(db_, std::move(definition)));
}

Result<void> UserFunctions::define_scalar(FunctionDefinition definition) {
  ScriptQuery statement = TRY(ScriptQuery::prepare(db_, definition.body));
  TRY(check_parameters(statement.get(), definition));
  if (statement.columns() != 1)
    return fail(fmt::format("{}: its SELECT has {} columns; a function returns one value", definition.name,
                            statement.columns()));
  const std::string name = definition.name;
  const auto count = static_cast<int>(definition.arguments.size());
  auto scalar = std::make_shared<Scalar>(*this, std::move(definition), std::move(statement));
  if (sqlite3_create_function_v2(db_, name.c_str(), count, SQLITE_UTF8 | SQLITE_INNOCUOUS, scalar.get(), Scalar::call,
                                 nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(fmt::format("{}: {}", name, sqlite3_errmsg(db_)));
  scalars_[fmt::format("{}/{}", name, count)] = std::move(scalar);
  return {};
}

}  // namespace cprof::store
