#include "store/row.h"

#include <fmt/format.h>

namespace cprof::store {

int64_t Row::integer() {
  const int column = column_++;
  if (statement_.is_integer(column)) return statement_.integer(column);
  say("not a whole number");
  return 0;
}

int64_t Row::within(int64_t low, int64_t high) {
  const int64_t value = integer();
  if (value >= low && value <= high) return value;
  say(fmt::format("{} is out of range", value));
  return low;
}

double Row::real() {
  const int column = column_++;
  if (statement_.is_null(column)) return std::numeric_limits<double>::quiet_NaN();
  if (!statement_.is_real(column)) say("not a number");
  return statement_.real(column);
}

std::string_view Row::text() {
  const int column = column_++;
  if (!statement_.is_text(column)) {
    say("not a text");
    return {};
  }
  const std::string_view text = statement_.text(column);
  if (text.size() > text_left_) {
    say("the texts are longer than the file");
    return {};
  }
  text_left_ -= text.size();
  return text;
}

void Row::say(std::string_view what) {
  if (problem_.empty()) problem_ = fmt::format("{}[{}]: {}: {}", table_.name, row_, column_name(column_ - 1), what);
}

// Generated columns are not selected.
std::string_view Row::column_name(int column) const {
  for (const Column& c : table_.columns)
    if (c.type.find(" AS ") == std::string_view::npos && column-- == 0) return c.name;
  return "row";
}

}  // namespace cprof::store
