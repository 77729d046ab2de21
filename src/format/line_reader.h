// Lines of a text input as UTF-8, one after the other, in bounded memory: LF or CRLF, the last one with or without its end.
// Used by the folded and text readers; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "format/text_encoding.h"

namespace cprof::format {

class LineReader {
 public:
  explicit LineReader(InputStream stream);

  // Without its line end; valid until the next call. Nothing at the end of the input. A line longer than 64 MiB is an
  // error.
  Result<std::optional<std::string_view>> next();
  uint64_t line_number() const { return line_number_; }  // of the line that next() gave last, from 1
  const std::string& name() const { return stream_.name(); }

 private:
  Result<void> refill();

  TextStream stream_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_, begin_ = 0, end_ = 0;
  bool ended_ = false;
  uint64_t line_number_ = 0;
};

}  // namespace cprof::format
