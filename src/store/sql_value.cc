#include "store/sql_value.h"

namespace cprof::store {

std::optional<std::string_view> text_of(sqlite3_value* value) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (!text) return std::nullopt;
  return std::string_view(text, static_cast<size_t>(sqlite3_value_bytes(value)));
}

void result_text(sqlite3_context* context, std::string_view text, TextLife life) {
  sqlite3_result_text64(context, text.data() ? text.data() : "", text.size(),
                        life == TextLife::kStays ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8);
}

}  // namespace cprof::store
