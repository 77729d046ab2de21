// Texts to and from SQLite's values, for the functions and tables of this folder.
#pragma once

#include <sqlite3.h>

#include <optional>
#include <string_view>

namespace cprof::store {

// Nothing when the value is NULL; else valid as long as the value is.
std::optional<std::string_view> text_of(sqlite3_value* value);

enum class TextLife : uint8_t { kCopied, kStays };  // kStays: the text lives as long as the connection
// An empty text is a text, not NULL.
void result_text(sqlite3_context* context, std::string_view text, TextLife life = TextLife::kCopied);

}  // namespace cprof::store
