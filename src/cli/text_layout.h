// Text for terminals: numbers, names cut in the middle, wrapped paragraphs. Widths are in columns: two for the wide
// characters of East Asia and for pictures, none for marks that combine with the character before them.
// Names come from files that others control: nothing here lets a control character through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cprof::cli {

size_t columns_of(std::string_view text);

// Control characters and broken UTF-8 become '?'; the result is safe to print.
std::string printable(std::string_view text);

// At most `columns` wide: the middle becomes "…", for both ends of a symbol say something.
std::string shortened(std::string_view text, size_t columns);

std::string padded(std::string_view text, size_t columns);         // spaces behind
std::string right_aligned(std::string_view text, size_t columns);  // spaces before

std::string percent(double share);              // 0.412 -> "41.2 %"
std::string duration_text(double nanoseconds);  // "12.4 s", "25.0 µs"
std::string bytes_text(double bytes);           // "201 MB", "1.50 GB"

// Words of `text` after `label`; further lines are indented as far as the label is wide. Ends with a line break.
std::string paragraph(std::string_view label, std::string_view text, size_t columns);

// One scale for all values of a view, chosen by its largest: "12.41 s" and "0.02 s" line up.
class ValueScale {
 public:
  ValueScale(int64_t largest, std::string_view unit);
  std::string text(int64_t value) const;

 private:
  double divisor_ = 1;
  int decimals_ = 0;
  std::string suffix_;
};

}  // namespace cprof::cli
