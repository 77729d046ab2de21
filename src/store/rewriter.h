// PerfettoSQL as SQLite understands it. CREATE PERFETTO TABLE|VIEW|INDEX become statements on the temporary schema,
// macro calls are expanded, INCLUDE, MACRO and FUNCTION are handed to the caller as what they define. Plain CREATE
// TABLE|VIEW become temporary too, for the profile itself is read-only. Used by QuerySession, one thread; pure but for
// the macros it remembers.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/sql_tokens.h"

namespace cprof::store {

struct SqlError {
  std::string message;
  size_t offset = 0;  // in the script
};
template <typename T>
using SqlResult = std::expected<T, SqlError>;

struct FunctionDefinition {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> columns;  // of RETURNS TABLE(...); empty: a scalar function
  std::string body;                  // a SELECT; arguments are $name in it
};

struct Rewritten {
  enum class Kind : uint8_t { kSql, kInclude, kFunction, kNothing };
  Kind kind = Kind::kNothing;
  std::vector<std::string> before = {};  // to run first: what OR REPLACE replaces
  std::string sql = {};
  std::string module = {};  // of INCLUDE: "slices.with_context", "slices.*" or "*"
  FunctionDefinition function = {};

  // Where in the script the byte of sql stands, or the macro call that it comes from.
  size_t origin_of(size_t sql_offset) const;
  std::vector<std::pair<size_t, size_t>> origins = {};  // (offset in sql, offset in the script), ascending
};

class Rewriter {
 public:
  SqlResult<Rewritten> rewrite(const ScriptStatement& statement);

  std::vector<std::string> macro_names() const;

 private:
  struct Macro {
    std::vector<std::string> parameters;
    std::string body;
  };
  friend class StatementParser;

  SqlResult<std::vector<Token>> expand(const std::vector<Token>& tokens, size_t level) const;
  SqlResult<std::vector<Token>> expand_call(const std::vector<Token>& tokens, size_t& at, size_t level) const;

  std::map<std::string, Macro, std::less<>> macros_;  // by lower-case name
};

}  // namespace cprof::store
