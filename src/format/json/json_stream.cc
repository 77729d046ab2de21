// RapidJSON pulls characters through Source and takes a NUL for the end. So a real NUL in the input, an error of the
// file below and a token without end all look like an end first, and are told apart afterwards.
#include "format/json/json_stream.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <cctype>

namespace cprof::format {

struct JsonStream::Source {
  using Ch = char;
  static constexpr size_t kBytes = 256 * 1024;

  explicit Source(InputStream input) : stream(std::move(input)), buffer(std::make_unique_for_overwrite<char[]>(kBytes)) {}

  Ch Peek() { return at != end || refill() ? *at : '\0'; }
  Ch Take() { return at != end || refill() ? *at++ : '\0'; }
  size_t Tell() const { return before + static_cast<size_t>(at - buffer.get()); }

  // Only in-situ parsing writes; RapidJSON's templates name these all the same.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  size_t PutEnd(Ch*) { return 0; }

  bool refill() {
    if (is_ended || error) return false;
    before = Tell();
    at = end = buffer.get();
    if (before - last_event > kMaxToken) {
      error = Error{fmt::format("{}: byte {}: more than {} bytes in one value", stream.name(), last_event, kMaxToken)};
      return false;
    }
    auto size = stream.read({buffer.get(), kBytes});
    if (!size) error = std::move(size.error());
    if (!size || *size == 0) {
      is_ended = true;
      return false;
    }
    end = at + *size;
    return true;
  }

  TextStream stream;
  std::unique_ptr<char[]> buffer;
  const char* at = buffer.get();
  const char* end = buffer.get();
  size_t before = 0;  // bytes that came before the buffer
  size_t last_event = 0;
  bool is_ended = false;
  std::optional<Error> error;
};

namespace {

// RapidJSON's handler in front of ours.
template <typename Source>
class Events {
 public:
  Events(Source& source, JsonHandler& handler) : source_(source), handler_(handler) {}

  bool StartObject() { return open() && handler_.begin_object(); }
  bool StartArray() { return open() && handler_.begin_array(); }
  bool EndObject(rapidjson::SizeType) { return close() && handler_.end_object(); }
  bool EndArray(rapidjson::SizeType) { return close() && handler_.end_array(); }
  bool Key(const char* text, rapidjson::SizeType size, bool) { return note() && handler_.key({text, size}); }
  bool String(const char* text, rapidjson::SizeType size, bool) { return note() && handler_.text({text, size}); }
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return note() && handler_.number({text, size}); }
  bool Bool(bool value) { return note() && handler_.boolean(value); }
  bool Null() { return note() && handler_.null(); }

  // Numbers come as text (kParseNumbersAsStringsFlag); RapidJSON's templates name these all the same.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

  bool is_too_deep() const { return depth_ > JsonStream::kMaxDepth; }

 private:
  bool note() {
    source_.last_event = source_.Tell();
    return true;
  }
  bool open() { return note() && ++depth_ <= JsonStream::kMaxDepth; }
  bool close() {
    --depth_;
    return note();
  }

  Source& source_;
  JsonHandler& handler_;
  unsigned depth_ = 0;
};

std::string lower_first(std::string text) {
  if (text.ends_with('.')) text.pop_back();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

JsonStream::JsonStream(InputStream input) : source_(std::make_unique<Source>(std::move(input))) {}
JsonStream::JsonStream(JsonStream&&) noexcept = default;
JsonStream::~JsonStream() = default;

uint64_t JsonStream::position() const { return source_->Tell(); }
const std::string& JsonStream::name() const { return source_->stream.name(); }

Error JsonStream::explain(int code, uint64_t at, const JsonHandler& handler) const {
  if (source_->error) return *source_->error;
  if (code == rapidjson::kParseErrorTermination) return {fmt::format("{}: byte {}: {}", name(), at, handler.refusal())};
  if (ended_early_) return {fmt::format("{}: the JSON ends early, at byte {}", name(), position())};
  const auto why = lower_first(rapidjson::GetParseError_En(static_cast<rapidjson::ParseErrorCode>(code)));
  return {fmt::format("{}: byte {}: not JSON: {}", name(), at, why)};
}

Result<void> JsonStream::parse(JsonHandler& handler) {
  using namespace rapidjson;
  Events<Source> events(*source_, handler);
  Reader reader;
  const ParseResult result =
      reader.Parse<kParseIterativeFlag | kParseNumbersAsStringsFlag>(*source_, events);
  if (events.is_too_deep())
    return fail(fmt::format("{}: byte {}: brackets nested more than {} deep", name(), result.Offset(), kMaxDepth));
  const bool is_at_end = source_->at == source_->end && !source_->refill();
  ended_early_ = result.IsError() && result.Code() != kParseErrorTermination && is_at_end && !source_->error;
  if (result.IsError()) return std::unexpected(explain(result.Code(), result.Offset(), handler));
  if (source_->error) return std::unexpected(*source_->error);
  if (!is_at_end) return fail(fmt::format("{}: byte {}: not JSON: a NUL byte", name(), source_->Tell()));
  return {};
}

}  // namespace cprof::format
