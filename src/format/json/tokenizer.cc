// One buffer slides over the text. A token lies in it as a whole: when it runs into the end, the bytes before it are
// dropped and more are read behind it, in a larger buffer when it is long. Texts are searched eight bytes at a time for
// their closing quote; escapes are only undone when somebody asks for the text.
#include "format/json/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/ascii.h"
#include "base/utf8.h"

namespace cprof::format {
namespace {

constexpr size_t kPadding = 8;  // readable behind the end, for whole words
constexpr uint64_t kOnes = 0x0101010101010101ull, kHighBits = 0x8080808080808080ull;

constexpr uint64_t zero_bytes(uint64_t word) { return (word - kOnes) & ~word & kHighBits; }

bool is_space(char c) { return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t'); }
constexpr auto kNumberParts = [] {
  std::array<bool, 256> parts{};
  for (char c : std::string_view("0123456789.-+eE")) parts[static_cast<unsigned char>(c)] = true;
  return parts;
}();
bool is_number_part(char c) { return kNumberParts[static_cast<unsigned char>(c)]; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The first quote or backslash, or end. Reads up to kPadding bytes behind the end.
char* find_special(char* at, char* end) {
  for (; at < end; at += 8) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    const uint64_t found = zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\');
    if (!found) continue;
    if constexpr (std::endian::native == std::endian::little) return std::min(at + __builtin_ctzll(found) / 8, end);
    while (at < end && *at != '"' && *at != '\\') ++at;
    return at;
  }
  return end;
}

uint32_t hex4(const char* digits) {
  uint32_t code = 0;
  for (int i = 0; i < 4; ++i) code = code << 4 | static_cast<uint32_t>(hex_digit(digits[i]));
  return code;
}

// \uXXXX at `at`, with the second half of a surrogate pair when one follows. Where the text goes on.
size_t append_code(std::string& out, std::string_view raw, size_t at) {
  const uint32_t code = hex4(raw.data() + at + 2);
  at += 6;
  if (!is_high_surrogate(code) && !is_low_surrogate(code)) {
    append_utf8(out, code);
    return at;
  }
  const bool has_second = is_high_surrogate(code) && at + 6 <= raw.size() && raw[at] == '\\' && raw[at + 1] == 'u';
  const uint32_t second = has_second ? hex4(raw.data() + at + 2) : 0;
  if (!is_low_surrogate(second)) {
    append_utf8(out, kReplacementCharacter);
    return at;
  }
  append_utf8(out, join_surrogates(code, second));
  return at + 6;
}

char simple_escape(char c) {
  switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;
  }
}

}  // namespace

JsonTokenizer::JsonTokenizer(InputStream input, size_t buffer_bytes)
    : stream_(std::move(input)),
      buffer_(std::make_unique<char[]>(buffer_bytes + kPadding)),
      capacity_(buffer_bytes),
      at_(buffer_.get()),
      end_(buffer_.get()),
      token_(buffer_.get()) {}

Error JsonTokenizer::at_position(std::string_view what) const {
  return {fmt::format("{}: {}, at byte {}", name(), what, position())};
}

JsonTokenizer::Token JsonTokenizer::fail_here(std::string_view what) {
  if (!failed_) error_ = at_position(what);  // an error of the input is already there
  failed_ = true;
  return Token::kBad;
}

bool JsonTokenizer::refill() {
  if (ended_) return false;
  const auto kept = static_cast<size_t>(end_ - token_), taken = static_cast<size_t>(at_ - token_);
  consumed_ += static_cast<uint64_t>(token_ - buffer_.get());
  if (kept * 2 > capacity_) {
    if (kept >= kMaxToken) {
      fail_here(fmt::format("a text or number longer than {} MiB", kMaxToken >> 20));
      ended_ = true;
      return false;
    }
    auto larger = std::make_unique_for_overwrite<char[]>(capacity_ * 2 + kPadding);
    memcpy(larger.get(), token_, kept);
    buffer_ = std::move(larger);
    capacity_ *= 2;
  } else {
    memmove(buffer_.get(), token_, kept);
  }
  token_ = buffer_.get();
  at_ = token_ + taken;
  end_ = token_ + kept;
  auto got = stream_.read({end_, capacity_ - kept});
  if (!got) {
    error_ = std::move(got.error());
    failed_ = ended_ = true;
    return false;
  }
  ended_ = *got < capacity_ - kept;
  end_ += *got;
  memset(end_, 0, kPadding);
  return *got > 0;
}

char JsonTokenizer::peek() {
  while (true) {
    while (at_ < end_) {
      if (!is_space(*at_)) return *at_;
      ++at_;
    }
    token_ = at_;
    if (!refill()) return 0;
  }
}

JsonTokenizer::Token JsonTokenizer::next() {
  if (failed_) return Token::kBad;
  token_ = at_;
  char c = peek();
  if (at_ == end_) return end_of_input();
  if (expect_ == Expect::kCommaOrEnd && c == ',') {
    ++at_;
    expect_ = in_object() ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
    c = peek();
    if (at_ == end_) return end_of_input();
  }
  token_ = at_;
  switch (expect_) {
    case Expect::kKeyOrEnd:
      if (c == '}') return close(true);
      return c == '"' ? string(Token::kKey) : fail_here("an object's key must stand here");
    case Expect::kColon:
      if (c != ':') return fail_here("a ':' must stand here");
      ++at_;
      expect_ = Expect::kValue;
      return next();
    case Expect::kValueOrEnd:
      if (c == ']') return close(false);
      return value(c);
    case Expect::kValue: return value(c);
    case Expect::kCommaOrEnd:
      if (c == '}' && in_object()) return close(true);
      if (c == ']' && !in_object()) return close(false);
      return fail_here("a ',' or the closing bracket must stand here");
    case Expect::kNothing: return fail_here("something stands behind the end of the document");
  }
  return Token::kBad;
}

JsonTokenizer::Token JsonTokenizer::next_key() {
  const bool has_comma = expect_ == Expect::kCommaOrEnd && at_ < end_ && *at_ == ',';
  char* const at = at_ + has_comma;
  if (failed_ || !(has_comma ? in_object() : expect_ == Expect::kKeyOrEnd) || at >= end_ || *at != '"') return next();
  token_ = at_ = at;
  return string(Token::kKey);
}

JsonTokenizer::Token JsonTokenizer::next_value() {
  if (failed_ || expect_ != Expect::kValue || at_ >= end_) return next();
  token_ = at_;
  if (*at_ == '"') return string(Token::kText);
  return is_digit(*at_) ? number() : next();
}

JsonTokenizer::Token JsonTokenizer::end_of_input() {
  if (failed_) return Token::kBad;
  const bool may_end = expect_ == Expect::kNothing || expect_ == Expect::kCommaOrEnd || expect_ == Expect::kValueOrEnd ||
                       expect_ == Expect::kKeyOrEnd;
  return may_end ? Token::kEnd : fail_here("the file ends inside a value");
}

JsonTokenizer::Token JsonTokenizer::skip(Token first) {
  if (first != Token::kBeginObject && first != Token::kBeginArray) return first;
  const unsigned outside = depth_ - 1;
  Token token = first;
  while (depth_ > outside && token != Token::kEnd && token != Token::kBad) token = next();
  return token;
}

JsonTokenizer::Token JsonTokenizer::finished(Token token) {
  expect_ = depth_ ? Expect::kCommaOrEnd : Expect::kNothing;
  return token;
}

JsonTokenizer::Token JsonTokenizer::open(bool is_object) {
  if (depth_ == kMaxDepth) return fail_here(fmt::format("brackets deeper than {}", kMaxDepth));
  ++at_;
  const uint64_t bit = uint64_t{1} << (depth_ % 64);
  uint64_t& word = kinds_[depth_ / 64];
  word = is_object ? word | bit : word & ~bit;
  ++depth_;
  expect_ = is_object ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  return is_object ? Token::kBeginObject : Token::kBeginArray;
}

JsonTokenizer::Token JsonTokenizer::close(bool is_object) {
  ++at_;
  --depth_;
  return finished(is_object ? Token::kEndObject : Token::kEndArray);
}

JsonTokenizer::Token JsonTokenizer::value(char c) {
  switch (c) {
    case '"': return string(Token::kText);
    case '{': return open(true);
    case '[': return open(false);
    default: break;
  }
  if (is_letter(c)) return word();
  return is_digit(c) || c == '-' ? number() : fail_here("a value must stand here");
}

JsonTokenizer::Token JsonTokenizer::string(Token kind) {
  has_escapes_ = false;
  ++at_;
  while (true) {
    at_ = find_special(at_, end_);
    if (at_ == end_) {
      if (refill()) continue;
      return fail_here("the file ends inside a text");
    }
    if (*at_ == '"') break;
    if (!escape()) return Token::kBad;
  }
  raw_ = {token_ + 1, static_cast<size_t>(at_ - token_ - 1)};
  ++at_;
  if (kind == Token::kText) return finished(kind);
  const bool has_colon = at_ < end_ && *at_ == ':';  // as nearly always
  at_ += has_colon;
  expect_ = has_colon ? Expect::kValue : Expect::kColon;
  return kind;
}

// A backslash is at at_: past what it begins.
bool JsonTokenizer::escape() {
  has_escapes_ = true;
  const auto has = [&](ptrdiff_t bytes) {
    while (end_ - at_ < bytes)
      if (!refill()) return false;
    return true;
  };
  if (!has(2)) return fail_here("the file ends inside a text") != Token::kBad;
  if (at_[1] != 'u') {
    const bool is_known = strchr("\"\\/bfnrt", at_[1]) && at_[1];
    at_ += 2;
    return is_known || fail_here("an unknown escape in a text") != Token::kBad;
  }
  if (!has(6)) return fail_here("the file ends inside a text") != Token::kBad;
  const bool is_code = std::all_of(at_ + 2, at_ + 6, [](char c) { return hex_digit(c) >= 0; });
  at_ += 6;
  return is_code || fail_here("\\u without four hexadecimal digits in a text") != Token::kBad;
}

JsonTokenizer::Token JsonTokenizer::number() {
  do {
    while (at_ < end_ && is_number_part(*at_)) ++at_;
  } while (at_ == end_ && refill());
  if (failed_) return Token::kBad;
  if (at_ < end_ && is_letter(*at_)) return word();  // -Infinity
  raw_ = {token_, static_cast<size_t>(at_ - token_)};
  has_escapes_ = false;
  return finished(Token::kNumber);
}

JsonTokenizer::Token JsonTokenizer::word() {
  do {
    while (at_ < end_ && is_letter(*at_)) ++at_;
  } while (at_ == end_ && refill());
  if (failed_) return Token::kBad;
  raw_ = {token_, static_cast<size_t>(at_ - token_)};
  has_escapes_ = false;
  struct Word {
    std::string_view text;
    Token token;
  };
  constexpr Word kWords[] = {{"true", Token::kTrue},       {"false", Token::kFalse},       {"null", Token::kNull},
                             {"NaN", Token::kNumber},      {"Infinity", Token::kNumber},   {"-Infinity", Token::kNumber}};
  for (const Word& known : kWords)
    if (raw_ == known.text) return finished(known.token);
  return fail_here("a value must stand here");
}

std::string_view JsonTokenizer::text() {
  if (!has_escapes_) return raw_;
  unescaped_.clear();
  for (size_t at = 0; at < raw_.size();) {
    const size_t end = std::min(raw_.find('\\', at), raw_.size());
    unescaped_.append(raw_, at, end - at);
    at = end;
    if (at == raw_.size()) break;
    if (raw_[at + 1] == 'u') {
      at = append_code(unescaped_, raw_, at);
    } else {
      unescaped_ += simple_escape(raw_[at + 1]);
      at += 2;
    }
  }
  return unescaped_;
}

}  // namespace cprof::format
