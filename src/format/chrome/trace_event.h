// One event of a Chrome trace, and who turns its JSON into it. Used by the Chrome trace reader only; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/chrome/v8_profiles.h"
#include "format/json/tokenizer.h"
#include "profile/builder.h"

namespace cprof::format::chrome {

constexpr int64_t kMaxTime = int64_t{1} << 62;  // either way, in nanoseconds: sums of two fit

// A pid or tid: a number of 32 bits, else the text that stands in its place.
struct TaskKey {
  static constexpr uint64_t kIsText = uint64_t{1} << 32;
  uint64_t value = 0;  // the number, or kIsText | StringId

  bool is_text() const { return value & kIsText; }
  int32_t number() const { return static_cast<int32_t>(value); }
  StringId text() const { return StringId(static_cast<uint32_t>(value)); }
  bool operator==(const TaskKey&) const = default;
};

struct TraceEvent {
  char phase = 0;  // 0: none, or none of one letter
  char scope = 't';
  bool is_sampled = false;  // our own writer's: made of samples
  bool has_bad_time = false;
  bool is_cut = false;      // arguments that are arrays, too deep, too many or too long are left out
  StringId name = profile::kNoText, category = profile::kNoText;
  StringId id = profile::kNoText, id_scope = profile::kNoText;
  StringId frame = profile::kNoText;      // "sf"
  std::vector<StringId> stack;            // "stack", root first
  std::optional<TaskKey> process, thread;
  std::optional<int64_t> time_ns, duration_ns, thread_duration_ns;
  int64_t weight = 0;                     // of the samples of "samples"; 0: not told
  bool is_empty = true;
};

// An argument; nested objects give "outer.inner". Views are valid until the next event is parsed.
struct Argument {
  enum class Kind : uint8_t { kText, kNumber, kWord };
  std::string_view key, text;
  Kind kind = Kind::kText;
};

// Strings that come again and again, without asking the large table each time.
class TextCache {
 public:
  explicit TextCache(StringTable& table) : table_(table) {}
  StringId intern(std::string_view text);

 private:
  struct Slot {
    std::string_view text;
    StringId id = profile::kNoText;
  };
  StringTable& table_;
  std::vector<Slot> slots_{8192};
};

class EventParser {
 public:
  EventParser(JsonTokenizer& json, StringTable& strings) : json_(json), cache_(strings) {}

  // The object whose opening bracket was the newest token. Gives kEndObject, or kEnd or kBad where it does not end.
  JsonTokenizer::Token parse(TraceEvent& event);

  size_t argument_count() const { return arguments_.size(); }
  Argument argument(size_t i) const;
  std::optional<Argument> find_argument(std::string_view key) const;
  const V8Part& v8_part() const { return v8_part_; }  // of the newest event
  StringId intern(std::string_view text) { return cache_.intern(text); }
  TaskKey task_key(std::string_view text);

 private:
  using Token = JsonTokenizer::Token;
  using Handler = Token (EventParser::*)(Token, TraceEvent&);
  struct Field {
    uint64_t key;  // its characters
    Handler handle;
  };
  static const std::array<Field, 18> kFields;

  Token name(Token, TraceEvent&);
  Token category(Token, TraceEvent&);
  Token phase(Token, TraceEvent&);
  Token time(Token, TraceEvent&);
  Token duration(Token, TraceEvent&);
  Token thread_duration(Token, TraceEvent&);
  Token process(Token, TraceEvent&);
  Token thread(Token, TraceEvent&);
  Token id(Token, TraceEvent&);
  Token id2(Token, TraceEvent&);
  Token id_scope(Token, TraceEvent&);
  Token scope(Token, TraceEvent&);
  Token frame(Token, TraceEvent&);
  Token stack(Token, TraceEvent&);
  Token weight(Token, TraceEvent&);
  Token sampled(Token, TraceEvent&);
  Token arguments(Token, TraceEvent&);
  Token cpu(Token, TraceEvent&);

  Token take_text(Token first, StringId& into);
  Token take_time(Token first, std::optional<int64_t>& into, TraceEvent& event);
  Token take_task(Token first, std::optional<TaskKey>& into);
  Token object_of_arguments(std::string_view prefix, unsigned depth, TraceEvent& event);
  Token take_argument(Token first, std::string_view key, unsigned depth, TraceEvent& event);
  bool add_argument(std::string_view key, std::string_view text, Argument::Kind kind);

  struct Row {
    uint32_t key_at, key_size, text_at, text_size;
    Argument::Kind kind;
  };
  JsonTokenizer& json_;
  TextCache cache_;
  std::vector<Row> arguments_;
  std::string texts_;  // of arguments_
  V8Part v8_part_;
};

// "12.3456", in microseconds, as nanoseconds, rounded to the nearest.
std::optional<int64_t> time_of(std::string_view microseconds);

}  // namespace cprof::format::chrome
