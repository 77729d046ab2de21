// JSON as a stream of events: RapidJSON's iterative SAX parser over a fixed buffer. Used by the readers of every JSON
// format; one thread. Memory is one token and the open brackets; nothing of the document is kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "format/text_encoding.h"

namespace cprof::format {

// Who takes the events. Each tells whether to go on: `return refuse("why")` ends the parse with these words. Views are
// valid during the call. Text is unescaped UTF-8 (bytes that are not are passed on); a number is as it stands in the
// file, for json_number.h.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual bool begin_object() = 0;
  virtual bool key(std::string_view name) = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
  virtual bool text(std::string_view value) = 0;
  virtual bool number(std::string_view literal) = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool null() = 0;

  const std::string& refusal() const { return refusal_; }

 protected:
  bool refuse(std::string why) {
    refusal_ = std::move(why);
    return false;
  }

 private:
  std::string refusal_;
};

class JsonStream {
 public:
  static constexpr unsigned kMaxDepth = 512;                 // of brackets
  static constexpr uint64_t kMaxToken = uint64_t{64} << 20;  // bytes from one event to the next

  explicit JsonStream(InputStream input);
  JsonStream(JsonStream&&) noexcept;
  ~JsonStream();

  // One value and nothing behind it. Errors begin with the input's name and tell the byte.
  Result<void> parse(JsonHandler& handler);

  // After an error of parse(): right as far as it went, but the input ended before its value did.
  bool ended_early() const { return ended_early_; }
  uint64_t position() const;  // bytes of the text that the parser has taken
  const std::string& name() const;

 private:
  struct Source;
  Error explain(int code, uint64_t at, const JsonHandler& handler) const;

  std::unique_ptr<Source> source_;
  bool ended_early_ = false;
};

}  // namespace cprof::format
