#include "format/gperftools/legacy_stream.h"

#include <fmt/format.h>

namespace cprof::format {
namespace {

constexpr size_t kChunk = 64 * 1024;
constexpr size_t kMaxLine = size_t{16} << 20;

}  // namespace

LegacyStream::LegacyStream(InputStream stream) : stream_(std::move(stream)) {}

Result<bool> LegacyStream::has(size_t size) {
  while (buffer_.size() - begin_ < size && !is_ended_) {
    before_ += begin_;
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t kept = buffer_.size();
    buffer_.resize(kept + kChunk);
    const size_t n = TRY(stream_.read(std::as_writable_bytes(std::span(buffer_).subspan(kept))));
    buffer_.resize(kept + n);
    is_ended_ = n < kChunk;
  }
  return buffer_.size() - begin_ >= size;
}

Result<std::optional<uint64_t>> LegacyStream::word(WordShape shape) {
  if (!TRY(has(shape.size))) return std::optional<uint64_t>();
  uint64_t value = 0;
  for (unsigned i = 0; i < shape.size; ++i) {
    const unsigned at = shape.is_big ? i : shape.size - 1 - i;
    value = value << 8 | static_cast<unsigned char>(buffer_[begin_ + at]);
  }
  begin_ += shape.size;
  return std::optional(value);
}

Result<std::string_view> LegacyStream::peek() {
  constexpr size_t kPeek = 4096;
  TRY(has(kPeek));
  return std::string_view(buffer_).substr(begin_, kPeek);
}

Result<std::optional<std::string_view>> LegacyStream::line() {
  size_t searched = 0;
  for (;;) {
    if (!TRY(has(searched + 1))) break;
    const size_t end = buffer_.find('\n', begin_ + searched);
    if (end != std::string::npos) {
      std::string_view line(buffer_.data() + begin_, end - begin_);
      begin_ = end + 1;
      ++line_number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      return std::optional(line);
    }
    searched = buffer_.size() - begin_;
    if (searched > kMaxLine)
      return fail(fmt::format("{}: byte {}: a line longer than {} bytes", name(), position(), kMaxLine));
  }
  if (begin_ == buffer_.size()) return std::optional<std::string_view>();
  std::string_view line(buffer_.data() + begin_, buffer_.size() - begin_);
  begin_ = buffer_.size();
  ++line_number_;
  return std::optional(line);
}

}  // namespace cprof::format
