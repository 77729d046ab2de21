#include "format/chrome/trace_event.h"

#include <algorithm>
#include <cstring>

#include "format/json/json_number.h"
#include "format/words.h"

namespace cprof::format::chrome {
namespace {

using Token = JsonTokenizer::Token;

constexpr unsigned kArgumentDepth = 3;   // of objects in args
constexpr size_t kMaxArguments = 32;     // of one event
constexpr size_t kMaxArgumentBytes = 4096;

// Arguments that hold a V8 profile and the times of its samples.
constexpr std::array<std::string_view, 4> kV8Profiles = {"data.cpuProfile", "data.cpu_profile", "cpuProfile", "cpu_profile"};
constexpr std::array<std::string_view, 2> kV8Deltas = {"data.timeDeltas", "timeDeltas"};

template <size_t size>
bool is_one_of(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool is_scalar(Token token) {
  return token == Token::kText || token == Token::kNumber || token == Token::kTrue || token == Token::kFalse;
}

// Up to seven characters as one number; longer keys are 0, which is none of those that matter.
constexpr uint64_t word_of(std::string_view key) {
  uint64_t word = 0;
  if (key.size() > 7) return word;
  for (char c : key) word = word << 8 | static_cast<unsigned char>(c);
  return word;
}

uint64_t load(const char* at, size_t size) {
  uint64_t word = 0;
  memcpy(&word, at, size);
  return word;
}

}  // namespace

StringId TextCache::intern(std::string_view text) {
  const size_t part = std::min<size_t>(text.size(), 8);
  uint64_t hash = profile::hash_join(text.size(), load(text.data(), part));
  hash = profile::hash_join(hash, load(text.data() + text.size() - part, part));
  Slot& slot = slots_[(hash >> 20) % slots_.size()];
  if (slot.text == text) return slot.id;
  const StringId id = table_.intern(text);
  slot = {table_[id], id};
  return id;
}

// Plain digits are the rule: 16 of them with the fraction keep inside 64 bits.
std::optional<int64_t> time_of(std::string_view text) {
  int64_t value = 0;
  size_t at = 0;
  while (at < text.size() && at < 15 && text[at] >= '0' && text[at] <= '9') value = value * 10 + (text[at++] - '0');
  const size_t whole = at;
  unsigned decimals = 0;
  if (whole && at < text.size() && text[at] == '.')
    for (++at; at < text.size() && decimals < 3 && text[at] >= '0' && text[at] <= '9'; ++decimals)
      value = value * 10 + (text[at++] - '0');
  if (whole && at == text.size()) {
    for (; decimals < 3; ++decimals) value *= 10;
    return value;
  }
  const auto exact = scaled_number(text, 3);
  if (!exact || *exact > kMaxTime || *exact < -kMaxTime) return std::nullopt;
  return exact;
}

const std::array<EventParser::Field, 18> EventParser::kFields = {{
    {word_of("name"), &EventParser::name},
    {word_of("cat"), &EventParser::category},
    {word_of("ph"), &EventParser::phase},
    {word_of("ts"), &EventParser::time},
    {word_of("dur"), &EventParser::duration},
    {word_of("pid"), &EventParser::process},
    {word_of("tid"), &EventParser::thread},
    {word_of("args"), &EventParser::arguments},
    {word_of("sf"), &EventParser::frame},
    {word_of("s"), &EventParser::scope},
    {word_of("id"), &EventParser::id},
    {word_of("id2"), &EventParser::id2},
    {word_of("scope"), &EventParser::id_scope},
    {word_of("tdur"), &EventParser::thread_duration},
    {word_of("stack"), &EventParser::stack},
    {word_of("weight"), &EventParser::weight},
    {word_of("sampled"), &EventParser::sampled},
    {word_of("cpu"), &EventParser::cpu},
}};

Token EventParser::parse(TraceEvent& event) {
  std::vector<StringId> stack = std::move(event.stack);  // its memory serves again
  stack.clear();
  event = {};
  event.stack = std::move(stack);
  arguments_.clear();
  texts_.clear();
  v8_part_.clear();
  while (true) {
    Token token = json_.next_key();
    if (token != Token::kKey) return token;
    event.is_empty = false;
    const uint64_t key = word_of(json_.text());
    Handler handle = nullptr;
    for (const Field& field : kFields)
      if (field.key == key) {
        handle = field.handle;
        break;
      }
    token = json_.next_value();
    token = handle ? (this->*handle)(token, event) : json_.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

Argument EventParser::argument(size_t i) const {
  const Row& row = arguments_[i];
  const std::string_view all = texts_;
  return {all.substr(row.key_at, row.key_size), all.substr(row.text_at, row.text_size), row.kind};
}

std::optional<Argument> EventParser::find_argument(std::string_view key) const {
  for (size_t i = 0; i < arguments_.size(); ++i)
    if (Argument found = argument(i); found.key == key) return found;
  return std::nullopt;
}

TaskKey EventParser::task_key(std::string_view text) {
  int32_t number = 0;
  if (parse_number(text, number)) return {static_cast<uint32_t>(number)};
  if (const auto whole = whole_number(text); whole && *whole >= INT32_MIN && *whole <= INT32_MAX)
    return {static_cast<uint32_t>(*whole)};
  return {TaskKey::kIsText | intern(text).value};
}

Token EventParser::take_text(Token first, StringId& into) {
  if (first == Token::kText || first == Token::kNumber) into = cache_.intern(json_.text());
  return json_.skip(first);
}

Token EventParser::take_time(Token first, std::optional<int64_t>& into, TraceEvent& event) {
  if (first == Token::kText || first == Token::kNumber) {
    into = time_of(json_.text());
    event.has_bad_time |= !into;
  }
  return json_.skip(first);
}

Token EventParser::take_task(Token first, std::optional<TaskKey>& into) {
  if (first == Token::kText || first == Token::kNumber) into = task_key(json_.text());
  return json_.skip(first);
}

Token EventParser::name(Token first, TraceEvent& event) { return take_text(first, event.name); }
Token EventParser::category(Token first, TraceEvent& event) { return take_text(first, event.category); }
Token EventParser::time(Token first, TraceEvent& event) { return take_time(first, event.time_ns, event); }
Token EventParser::duration(Token first, TraceEvent& event) { return take_time(first, event.duration_ns, event); }
Token EventParser::thread_duration(Token first, TraceEvent& event) {
  return take_time(first, event.thread_duration_ns, event);
}
Token EventParser::process(Token first, TraceEvent& event) { return take_task(first, event.process); }
Token EventParser::thread(Token first, TraceEvent& event) { return take_task(first, event.thread); }
Token EventParser::id(Token first, TraceEvent& event) { return take_text(first, event.id); }
Token EventParser::id_scope(Token first, TraceEvent& event) { return take_text(first, event.id_scope); }
Token EventParser::frame(Token first, TraceEvent& event) { return take_text(first, event.frame); }

Token EventParser::phase(Token first, TraceEvent& event) {
  if (first == Token::kText && json_.text().size() == 1) event.phase = json_.text()[0];
  return json_.skip(first);
}

Token EventParser::scope(Token first, TraceEvent& event) {
  if (first == Token::kText && !json_.text().empty()) event.scope = json_.text()[0];
  return json_.skip(first);
}

// {"local": "0x1"} or {"global": "0x1"}: ids of different kinds never meet.
Token EventParser::id2(Token first, TraceEvent& event) {
  if (first != Token::kBeginObject) return json_.skip(first);
  std::string joined;
  while (true) {
    Token token = json_.next();
    if (token == Token::kEndObject && !joined.empty()) event.id = intern(joined);
    if (token != Token::kKey) return token;
    joined = json_.text();
    token = json_.next();
    if (token == Token::kText || token == Token::kNumber) joined += json_.text();
    token = json_.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

Token EventParser::stack(Token first, TraceEvent& event) {
  if (first != Token::kBeginArray) return json_.skip(first);
  while (true) {
    Token token = json_.next();
    if (token == Token::kEndArray || JsonTokenizer::is_over(token)) return token;
    if (token == Token::kText || token == Token::kNumber) event.stack.push_back(intern(json_.text()));
    token = json_.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

Token EventParser::weight(Token first, TraceEvent& event) {
  if (first == Token::kText || first == Token::kNumber) event.weight = whole_number(json_.text()).value_or(0);
  return json_.skip(first);
}

Token EventParser::sampled(Token first, TraceEvent& event) {
  event.is_sampled = first == Token::kTrue;
  return json_.skip(first);
}

Token EventParser::cpu(Token first, TraceEvent& event) { return take_argument(first, "cpu", 0, event); }

Token EventParser::arguments(Token first, TraceEvent& event) {
  return first == Token::kBeginObject ? object_of_arguments({}, 0, event) : json_.skip(first);
}

Token EventParser::object_of_arguments(std::string_view prefix, unsigned depth, TraceEvent& event) {
  std::string key(prefix);
  while (true) {
    Token token = json_.next_key();
    if (token != Token::kKey) return token;
    key.resize(prefix.size());
    key += json_.text();
    token = take_argument(json_.next_value(), key, depth, event);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

Token EventParser::take_argument(Token first, std::string_view key, unsigned depth, TraceEvent& event) {
  if (first == Token::kBeginObject && is_one_of(kV8Profiles, key)) return parse_v8_profile(json_, cache_, v8_part_);
  if (first == Token::kBeginArray && is_one_of(kV8Deltas, key)) return parse_v8_deltas(json_, v8_part_);
  if (first == Token::kBeginObject && depth + 1 < kArgumentDepth)
    return object_of_arguments(std::string(key) + ".", depth + 1, event);
  event.is_cut |= first == Token::kBeginObject || first == Token::kBeginArray;
  if (is_scalar(first)) {
    const bool is_word = first == Token::kTrue || first == Token::kFalse;
    const auto kind = first == Token::kText     ? Argument::Kind::kText
                      : first == Token::kNumber ? Argument::Kind::kNumber
                                                : Argument::Kind::kWord;
    const std::string_view word = first == Token::kTrue ? "true" : "false";
    event.is_cut |= !add_argument(key, is_word ? word : json_.text(), kind);
  }
  return json_.skip(first);
}

bool EventParser::add_argument(std::string_view key, std::string_view text, Argument::Kind kind) {
  if (arguments_.size() == kMaxArguments || key.size() > kMaxArgumentBytes || text.size() > kMaxArgumentBytes) return false;
  Row row{static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(key.size()), 0, static_cast<uint32_t>(text.size()), kind};
  texts_ += key;
  row.text_at = static_cast<uint32_t>(texts_.size());
  texts_ += text;
  arguments_.push_back(row);
  return true;
}

}  // namespace cprof::format::chrome
