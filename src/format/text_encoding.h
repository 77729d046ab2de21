// Text inputs as UTF-8: a byte order mark is taken off, UTF-16 (what PowerShell's redirection writes) is converted; all
// other bytes pass unchanged. Used by LineReader, and by the registry on the first bytes; one thread.
#pragma once

#include <span>
#include <string>

#include "format/input.h"

namespace cprof::format {

enum class TextEncoding : uint8_t { kPlain, kUtf8WithMark, kUtf16Little, kUtf16Big };

TextEncoding encoding_of(std::span<const std::byte> head);
// An input's first bytes, converted; they may end inside a character.
std::string head_as_utf8(std::span<const std::byte> head);

class TextStream {
 public:
  explicit TextStream(InputStream stream) : stream_(std::move(stream)) {}

  // Fills `into` unless the input ends: a short count is the end.
  Result<size_t> read(std::span<char> into);
  const std::string& name() const { return stream_.name(); }
  std::optional<uint64_t> size() const { return stream_.size(); }  // in bytes of the input, where it is known before

 private:
  Result<size_t> start(std::span<char> into);
  Result<void> convert_more();

  InputStream stream_;
  bool started_ = false, ended_ = false;
  TextEncoding encoding_ = TextEncoding::kPlain;
  std::string raw_;        // UTF-16 that ends inside a character
  std::string converted_;  // not handed out yet, from used_ on
  size_t used_ = 0;
};

}  // namespace cprof::format
