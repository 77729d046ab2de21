// Writes JSON without spaces: commas and escapes are set here, the order of calls is the document. Used by the writers of
// JSON formats; one thread. Text that is not UTF-8 gets U+FFFD in its place, since JSON cannot hold other bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/gzip.h"

namespace cprof::format {

// "text" with its quotes.
void append_json_text(std::string& out, std::string_view text);
// value / 10^decimals, without the zeros at the end: (1500000, 6) is 1.5.
void append_decimal(std::string& out, int64_t value, unsigned decimals);

// Errors of the output are kept and come from finish(), after which the caller finishes `out`.
class JsonWriter {
 public:
  explicit JsonWriter(PackedOutput& out) : out_(&out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  void key(std::string_view name);

  // Values: of arrays, or behind a key.
  void text(std::string_view value);
  void number(int64_t value);
  void unsigned_number(uint64_t value);
  void decimal(int64_t value, unsigned decimals);
  void fixed(int64_t value, unsigned decimals);  // with all its zeros: (1500000, 6) is 1.500000
  void real(double value);  // what JSON has no word for (NaN, infinity) becomes null
  void boolean(bool value);
  void null();

  // Members of an object, key and value at once.
  void begin_object(std::string_view name) { key(name), begin_object(); }
  void begin_array(std::string_view name) { key(name), begin_array(); }
  void text(std::string_view name, std::string_view value) { key(name), text(value); }
  void number(std::string_view name, int64_t value) { key(name), number(value); }
  void unsigned_number(std::string_view name, uint64_t value) { key(name), unsigned_number(value); }
  void boolean(std::string_view name, bool value) { key(name), boolean(value); }
  void null(std::string_view name) { key(name), null(); }
  // An array: write puts one value for each row.
  template <typename Rows, typename Write>
  void array(std::string_view name, const Rows& rows, Write write) {
    begin_array(name);
    for (const auto& row : rows) write(row);
    end_array();
  }

  void line_break() { needs_break_ = true; }  // in front of the next value or bracket, to keep lines short

  Result<void> finish();

 private:
  void open(char bracket);
  void close(char bracket);
  void begin_value();
  void break_line();
  void flush_full();

  PackedOutput* out_;
  std::string buffer_;
  bool needs_comma_ = false, needs_break_ = false;
  Result<void> result_;
};

}  // namespace cprof::format
