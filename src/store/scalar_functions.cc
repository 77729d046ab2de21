#include "store/scalar_functions.h"

#include <fmt/format.h>

#include "analyze/weights.h"
#include "store/sql_value.h"

namespace cprof::store {
namespace {

using Demangle = std::function<std::string(std::string_view)>;

// NULL for what is not mangled, as the trace processor has it.
void demangle(sqlite3_context* context, int, sqlite3_value** arguments) {
  const auto name = text_of(arguments[0]);
  if (!name || !(name->starts_with("_Z") || name->starts_with("_R") || name->starts_with("__Z"))) return;
  const std::string plain = (*static_cast<Demangle*>(sqlite3_user_data(context)))(*name);
  if (plain != *name) result_text(context, plain);
}

// FNV-1a: the same text gives the same number everywhere.
void hash(sqlite3_context* context, int count, sqlite3_value** arguments) {
  uint64_t value = 0xcbf29ce484222325;
  for (int i = 0; i < count; ++i)
    for (char c : text_of(arguments[i]).value_or(std::string_view()))
      value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  sqlite3_result_int64(context, static_cast<int64_t>(value));
}

// str_split('a:b:c', ':', 1) is 'b'; NULL when there are not so many parts.
void str_split(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto text = text_of(arguments[0]);
  const auto separator = text_of(arguments[1]);
  int64_t wanted = sqlite3_value_int64(arguments[2]);
  if (!text || !separator) return;
  if (separator->empty() || wanted < 0)
    return sqlite3_result_error(context, "str_split(text, separator, part from 0)", -1);
  for (; wanted > 0; --wanted) {
    const size_t found = text->find(*separator);
    if (found == std::string_view::npos) return;
    text->remove_prefix(found + separator->size());
  }
  result_text(context, text->substr(0, text->find(*separator)));
}

// sum() of SQL gives up a query whose sum leaves 64 bits; this one stays at the limit, as everywhere else in cprof.
void sum_step(sqlite3_context* context, int, sqlite3_value** arguments) {
  auto* sum = static_cast<int64_t*>(sqlite3_aggregate_context(context, sizeof(int64_t)));
  if (sum) *sum = analyze::add_clamped(*sum, sqlite3_value_int64(arguments[0]));
}
void sum_final(sqlite3_context* context) {
  const auto* sum = static_cast<int64_t*>(sqlite3_aggregate_context(context, 0));
  sqlite3_result_int64(context, sum ? *sum : 0);
}

}  // namespace

Result<void> add_scalar_functions(sqlite3* db, Demangle demangler) {
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  auto* owned = new Demangle(std::move(demangler));
  auto destroy = [](void* pointer) { delete static_cast<Demangle*>(pointer); };
  if (sqlite3_create_function_v2(db, "demangle", 1, kFlags, owned, demangle, nullptr, nullptr, destroy) != SQLITE_OK ||
      sqlite3_create_function_v2(db, "hash", -1, kFlags, nullptr, hash, nullptr, nullptr, nullptr) != SQLITE_OK ||
      sqlite3_create_function_v2(db, "sum_int", 1, kFlags, nullptr, nullptr, sum_step, sum_final, nullptr) !=
          SQLITE_OK ||
      sqlite3_create_function_v2(db, "str_split", 3, kFlags, nullptr, str_split, nullptr, nullptr, nullptr) !=
          SQLITE_OK)
    return fail(fmt::format("functions: {}", sqlite3_errmsg(db)));
  return {};
}

}  // namespace cprof::store
