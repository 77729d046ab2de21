#include "format/text_encoding.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/utf8.h"

namespace cprof::format {
namespace {

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf", kLittleMark = "\xff\xfe", kBigMark = "\xfe\xff";
constexpr size_t kRawBytes = 64 * 1024;
constexpr size_t kLongestMark = 3;

std::string_view mark_of(TextEncoding encoding) {
  constexpr std::string_view kMarks[] = {"", kUtf8Mark, kLittleMark, kBigMark};
  return kMarks[static_cast<size_t>(encoding)];
}

// Takes whole characters off the front of raw; at the end of the input the rest too, a lone half as U+FFFD.
void convert(std::string& raw, bool is_big, bool is_end, std::string& out) {
  auto unit = [&](size_t at) {
    auto low = static_cast<unsigned char>(raw[at + is_big]), high = static_cast<unsigned char>(raw[at + !is_big]);
    return static_cast<uint32_t>(low | high << 8);
  };
  size_t at = 0;
  for (; at + 2 <= raw.size(); at += 2) {
    const uint32_t first = unit(at);
    const bool has_next = at + 4 <= raw.size();
    if (is_high_surrogate(first) && !has_next && !is_end) break;
    const uint32_t next = is_high_surrogate(first) && has_next ? unit(at + 2) : 0;
    if (is_low_surrogate(next)) {
      append_utf8(out, join_surrogates(first, next));
      at += 2;
    } else {
      append_utf8(out, is_high_surrogate(first) || is_low_surrogate(first) ? kReplacementCharacter : first);
    }
  }
  raw.erase(0, at);
}

}  // namespace

TextEncoding encoding_of(std::span<const std::byte> head) {
  std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  for (auto encoding : {TextEncoding::kUtf8WithMark, TextEncoding::kUtf16Little, TextEncoding::kUtf16Big})
    if (text.starts_with(mark_of(encoding))) return encoding;
  return TextEncoding::kPlain;
}

std::string head_as_utf8(std::span<const std::byte> head) {
  const TextEncoding encoding = encoding_of(head);
  std::string raw(reinterpret_cast<const char*>(head.data()), head.size());
  raw.erase(0, mark_of(encoding).size());
  if (encoding == TextEncoding::kPlain || encoding == TextEncoding::kUtf8WithMark) return raw;
  std::string converted;
  convert(raw, encoding == TextEncoding::kUtf16Big, false, converted);
  return converted;
}

Result<size_t> TextStream::start(std::span<char> into) {
  started_ = true;
  CPROF_CHECK(into.size() >= kLongestMark);
  size_t n = TRY(stream_.read(std::as_writable_bytes(into)));
  ended_ = n < into.size();
  encoding_ = encoding_of(std::as_bytes(into.first(n)));
  size_t mark = mark_of(encoding_).size();
  std::string_view behind_mark(into.data() + mark, n - mark);
  if (encoding_ == TextEncoding::kUtf16Little || encoding_ == TextEncoding::kUtf16Big) {
    raw_ = behind_mark;
    convert(raw_, encoding_ == TextEncoding::kUtf16Big, ended_, converted_);
    return 0;
  }
  if (mark) memmove(into.data(), into.data() + mark, n - mark);
  return n - mark;
}

Result<void> TextStream::convert_more() {
  converted_.clear();
  used_ = 0;
  const size_t kept = raw_.size();
  raw_.resize(kept + kRawBytes);
  size_t n = TRY(stream_.read(std::as_writable_bytes(std::span(raw_).subspan(kept))));
  ended_ = n < kRawBytes;
  raw_.resize(kept + n);
  convert(raw_, encoding_ == TextEncoding::kUtf16Big, ended_, converted_);
  return {};
}

Result<size_t> TextStream::read(std::span<char> into) {
  size_t done = started_ ? 0 : TRY(start(into));
  if (encoding_ == TextEncoding::kPlain || encoding_ == TextEncoding::kUtf8WithMark) {
    if (!ended_) done += TRY(stream_.read(std::as_writable_bytes(into.subspan(done))));
    ended_ |= done < into.size();
    return done;
  }
  while (done < into.size()) {
    if (used_ == converted_.size() && !ended_) TRY(convert_more());
    if (used_ == converted_.size() && ended_) break;
    size_t n = std::min(into.size() - done, converted_.size() - used_);
    memcpy(into.data() + done, converted_.data() + used_, n);
    done += n;
    used_ += n;
  }
  return done;
}

}  // namespace cprof::format
