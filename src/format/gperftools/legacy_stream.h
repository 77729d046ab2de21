// Machine words and lines of text out of one input: a CPU profile is words with a text behind them. Used by the readers of
// this folder; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/input.h"

namespace cprof::format {

// How a word stands in the file.
struct WordShape {
  unsigned size = 8;  // bytes, 4 or 8
  bool is_big = false;
};

class LegacyStream {
 public:
  explicit LegacyStream(InputStream stream);

  Result<std::optional<uint64_t>> word(WordShape shape);  // nothing: the input ended before it or inside it
  // Without its end; valid until the next call. Nothing at the end. A line longer than 16 MiB is an error.
  Result<std::optional<std::string_view>> line();
  // The next bytes, at most 4096, which stay to be read.
  Result<std::string_view> peek();

  uint64_t position() const { return before_ + begin_; }  // bytes taken
  uint64_t line_number() const { return line_number_; }
  const std::string& name() const { return stream_.name(); }

 private:
  Result<bool> has(size_t size);  // makes that many bytes lie in the buffer

  InputStream stream_;
  std::string buffer_;
  size_t begin_ = 0;
  uint64_t before_ = 0, line_number_ = 0;
  bool is_ended_ = false;
};

}  // namespace cprof::format
