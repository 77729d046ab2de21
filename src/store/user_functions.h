// Functions that a script defines by CREATE PERFETTO FUNCTION: scalar ones as functions of SQLite, those that return a
// table as virtual tables. Each runs its SELECT with the arguments bound. Owned by QuerySession; clear() comes before
// the connection is closed.
#pragma once

#include <sqlite3.h>

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "store/rewriter.h"

namespace cprof::store {

class UserFunctions {
 public:
  explicit UserFunctions(sqlite3* db) : db_(db) {}

  // A function of that name is replaced.
  Result<void> define(FunctionDefinition definition);
  void clear() { scalars_.clear(); }

 private:
  Result<void> define_scalar(FunctionDefinition definition);

  class Scalar;
  sqlite3* db_;
  int depth_ = 0;  // of calls within calls
  std::map<std::string, std::shared_ptr<Scalar>, std::less<>> scalars_;
};

}  // namespace cprof::store
