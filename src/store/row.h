// A row of a recording that is not trusted: each column is asked for by name and type, and the first that is not what it
// should be is remembered with its table and row. Used by the reader only.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "store/database.h"
#include "store/schema.h"

namespace cprof::store {

// Columns are taken in their order; a cursor is reset for each row.
class Row {
 public:
  // text_left: how many bytes of text all rows of the file may still have together. Overflow pages that hang in many rows
  // would make more of them than the file has bytes.
  Row(const TableDef& table, const Statement& statement, uint64_t& text_left)
      : table_(table), statement_(statement), text_left_(text_left) {}

  void start(uint64_t row) {
    row_ = row;
    column_ = 0;
  }

  int64_t integer();                     // any whole number
  uint64_t bits() { return static_cast<uint64_t>(integer()); }
  uint64_t time() { return is_null() ? skip() : bits(); }  // NULL: 0
  template <typename Number>
  Number number() {  // within the range of the type
    return static_cast<Number>(within(std::numeric_limits<Number>::min(), std::numeric_limits<Number>::max()));
  }
  bool flag() { return within(0, 1) != 0; }
  size_t index(size_t size) { return static_cast<size_t>(within(0, static_cast<int64_t>(size) - 1)); }
  double real();                         // NULL: not a number
  std::string_view text();

  // Whether it names a row of a table of that size; the model's own check is left to the model.
  template <typename Tag>
  Id<Tag> id() {
    return Id<Tag>(static_cast<uint32_t>(within(0, std::numeric_limits<uint32_t>::max() - int64_t{1})));
  }
  template <typename Tag>
  Id<Tag> optional_id() {
    if (!is_null()) return id<Tag>();
    skip();
    return {};
  }
  std::optional<int64_t> optional_integer() {
    if (!is_null()) return integer();
    skip();
    return std::nullopt;
  }

  bool is_null() const { return statement_.is_null(column_); }
  bool is_text() const { return statement_.is_text(column_); }
  uint64_t skip() {
    ++column_;
    return 0;
  }

  void say(std::string_view what);  // of the column before
  bool is_bad() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  int64_t within(int64_t low, int64_t high);
  std::string_view column_name(int column) const;

  const TableDef& table_;
  const Statement& statement_;
  uint64_t& text_left_;
  uint64_t row_ = 0;
  int column_ = 0;
  std::string problem_;
};

}  // namespace cprof::store
