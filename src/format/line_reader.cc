#include "format/line_reader.h"

#include <fmt/format.h>

#include <cstring>

namespace cprof::format {
namespace {

constexpr size_t kFirstBytes = 512 * 1024;
constexpr size_t kMaxLineBytes = size_t{64} << 20;

}  // namespace

LineReader::LineReader(InputStream stream)
    : stream_(std::move(stream)),
      buffer_(std::make_unique_for_overwrite<char[]>(kFirstBytes)),
      capacity_(kFirstBytes) {}

Result<void> LineReader::refill() {
  const size_t kept = end_ - begin_;
  if (kept >= kMaxLineBytes)
    return fail(fmt::format("{}: line {} is longer than 64 MiB", name(), line_number_ + 1));
  if (kept == capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ * 2);
    memcpy(larger.get(), buffer_.get() + begin_, kept);
    buffer_ = std::move(larger);
    capacity_ *= 2;
  } else {
    memmove(buffer_.get(), buffer_.get() + begin_, kept);
  }
  begin_ = 0;
  end_ = kept;
  size_t room = capacity_ - end_;
  size_t n = TRY(stream_.read(std::span(buffer_.get() + end_, room)));
  end_ += n;
  ended_ = n < room;
  return {};
}

Result<std::optional<std::string_view>> LineReader::next() {
  size_t searched = 0;
  for (;;) {
    const char* start = buffer_.get() + begin_;
    const size_t available = end_ - begin_;
    const void* newline = available > searched ? memchr(start + searched, '\n', available - searched) : nullptr;
    if (!newline && !ended_) {
      searched = available;
      TRY(refill());
      continue;
    }
    if (!newline && available == 0) return std::nullopt;
    size_t length = newline ? static_cast<size_t>(static_cast<const char*>(newline) - start) : available;
    begin_ += length + (newline ? 1 : 0);
    ++line_number_;
    if (length && start[length - 1] == '\r') --length;
    return std::string_view(start, length);
  }
}

}  // namespace cprof::format
