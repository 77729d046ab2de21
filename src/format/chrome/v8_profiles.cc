// Chunks of one profile have one id in their process; their nodes name parents of earlier chunks, and the time of a sample is
// the sum of all deltas before it. So all is kept until the file is read, and chunks are put in the order of their events.
#include "format/chrome/v8_profiles.h"

#include <algorithm>

#include "format/chrome/trace_event.h"
#include "format/json/json_number.h"

namespace cprof::format::chrome {
namespace {

using Token = JsonTokenizer::Token;

constexpr int64_t kMicrosecond = 1000;

// An array's, behind its opening bracket.
Token take_numbers(JsonTokenizer& json, std::vector<int64_t>& into) {
  while (true) {
    Token token = json.next();
    if (token == Token::kEndArray || JsonTokenizer::is_over(token)) return token;
    into.push_back(token == Token::kNumber ? whole_number(json.text()).value_or(0) : 0);
    token = json.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

class PartParser {
 public:
  PartParser(JsonTokenizer& json, TextCache& texts, V8Part& part) : json_(json), texts_(texts), part_(part) {}

  Token profile() {
    part_.is_present = true;
    return object([this](std::string_view key) {
      if (key == "nodes") return list([this](Token first) { return first == Token::kBeginObject ? node() : json_.skip(first); });
      if (key == "samples") return numbers(part_.samples);
      if (key == "timeDeltas") return numbers(part_.deltas);
      if (key == "startTime") return number(part_.start_us);
      if (key == "endTime") return number(part_.end_us);
      return json_.skip(json_.next());
    });
  }

 private:
  // on_key takes the value of each key.
  template <typename OnKey>
  Token object(OnKey&& on_key) {
    while (true) {
      Token token = json_.next();
      if (token != Token::kKey) return token;
      token = on_key(json_.text());
      if (JsonTokenizer::is_over(token)) return token;
    }
  }

  template <typename OnValue>
  Token list(OnValue&& on_value) {
    const Token first = json_.next();
    if (first != Token::kBeginArray) return json_.skip(first);
    while (true) {
      Token token = json_.next();
      if (token == Token::kEndArray || JsonTokenizer::is_over(token)) return token;
      token = on_value(token);
      if (JsonTokenizer::is_over(token)) return token;
    }
  }

  Token numbers(std::vector<int64_t>& into) {
    const Token first = json_.next();
    return first == Token::kBeginArray ? take_numbers(json_, into) : json_.skip(first);
  }

  template <typename Into>
  Token number(Into& into) {
    const Token first = json_.next();
    if (first == Token::kNumber)
      if (const auto value = whole_number(json_.text())) into = *value;
    return json_.skip(first);
  }

  Token text(StringId& into) {
    const Token first = json_.next();
    if (first == Token::kText) into = texts_.intern(json_.text());
    return json_.skip(first);
  }

  Token node() {
    V8Node node;
    children_.clear();
    const Token last = object([&](std::string_view key) {
      if (key == "id") return number(node.id);
      if (key == "parent") return number(node.parent);
      if (key == "children") return numbers(children_);
      if (key == "callFrame") return call_frame(node);
      return json_.skip(json_.next());
    });
    part_.nodes.push_back(node);
    for (int64_t child : children_) part_.edges.emplace_back(node.id, child);
    return last;
  }

  Token call_frame(V8Node& node) {
    const Token first = json_.next();
    if (first != Token::kBeginObject) return json_.skip(first);
    return object([&](std::string_view key) {
      if (key == "functionName") return text(node.name);
      if (key == "url") return text(node.url);
      if (key == "lineNumber") return number(node.line);
      if (key == "columnNumber") return number(node.column);
      return json_.skip(json_.next());
    });
  }

  JsonTokenizer& json_;
  TextCache& texts_;
  V8Part& part_;
  std::vector<int64_t> children_;
};

// Nothing when it is out of range.
std::optional<int64_t> in_nanoseconds(std::optional<int64_t> microseconds) {
  int64_t result = 0;
  if (!microseconds || __builtin_mul_overflow(*microseconds, kMicrosecond, &result) || result > kMaxTime || result < -kMaxTime)
    return std::nullopt;
  return result;
}

}  // namespace

void V8Part::clear() {
  if (!is_present && deltas.empty()) return;
  nodes.clear();
  edges.clear();
  samples.clear();
  deltas.clear();
  start_us.reset();
  end_us.reset();
  is_present = false;
}

Token parse_v8_profile(JsonTokenizer& json, TextCache& texts, V8Part& part) { return PartParser(json, texts, part).profile(); }

Token parse_v8_deltas(JsonTokenizer& json, V8Part& part) { return take_numbers(json, part.deltas); }

V8Profiles::V8Profile& V8Profiles::profile_of(const Key& key) {
  auto [it, is_new] = by_key_.try_emplace(key);
  if (is_new) it->second = &profiles_.emplace_back(builder_);
  return *it->second;
}

void V8Profiles::begin(const Key& key, profile::ThreadId thread, int64_t start_ns) {
  V8Profile& profile = profile_of(key);
  profile.thread = thread;
  profile.start_ns = start_ns;
}

void V8Profiles::add_chunk(const Key& key, profile::ThreadId thread, int64_t event_ns, const V8Part& part) {
  add(profile_of(key), thread, event_ns, part);
}

void V8Profiles::add_whole(profile::ThreadId thread, int64_t event_ns, const V8Part& part) {
  V8Profile& profile = profiles_.emplace_back(builder_);
  profile.start_ns = in_nanoseconds(part.start_us);
  add(profile, thread, event_ns, part);
}

void V8Profiles::add(V8Profile& profile, profile::ThreadId thread, int64_t event_ns, const V8Part& part) {
  if (!profile.thread.valid()) profile.thread = thread;
  if (const auto end = in_nanoseconds(part.end_us)) profile.end_ns = end;
  for (const V8Node& node : part.nodes) profile.tree.add(node);
  for (const auto& [parent, child] : part.edges) profile.tree.add_edge(parent, child);
  profile.chunks.push_back({event_ns, profile.samples.size(), part.samples.size()});
  for (size_t i = 0; i < part.samples.size(); ++i)
    profile.samples.push_back({part.samples[i], i < part.deltas.size() ? part.deltas[i] : 0});
  without_time_ += part.samples.size() - std::min(part.samples.size(), part.deltas.size());
}

// In the order of time: V8 writes samples as they come, with deltas below 0 at times.
std::vector<V8Profiles::Moment> V8Profiles::moments_of(V8Profile& profile, Outcome& outcome) const {
  std::ranges::stable_sort(profile.chunks, {}, &Chunk::event_ns);
  if (!profile.start_ns && !profile.chunks.empty()) {  // its beginning is not in the trace: a chunk is written at its end
    const Chunk& first = profile.chunks.front();
    int64_t now = first.event_ns;
    for (size_t i = 0; i < first.count; ++i) now -= in_nanoseconds(profile.samples[first.first + i].delta_us).value_or(0);
    profile.start_ns = now;
  }
  std::vector<Moment> moments;
  moments.reserve(profile.samples.size());
  int64_t now = profile.start_ns.value_or(0);
  for (const Chunk& chunk : profile.chunks) {
    for (size_t i = 0; i < chunk.count; ++i) {
      const Sample& sample = profile.samples[chunk.first + i];
      const auto delta = in_nanoseconds(sample.delta_us);
      int64_t next = 0;
      if (!delta || __builtin_add_overflow(now, *delta, &next) || next > kMaxTime || next < -kMaxTime) {
        ++outcome.malformed;
        continue;
      }
      now = next;
      moments.push_back({now, sample.node});
    }
  }
  std::ranges::stable_sort(moments, {}, &Moment::time_ns);
  return moments;
}

// The last sample lasts until the profile's end where that is told, else as long as the one before.
void V8Profiles::add_samples(V8Profile& profile, Outcome& outcome) {
  outcome.malformed += !profile.tree.index();
  const std::vector<Moment> moments = moments_of(profile, outcome);
  if (moments.empty()) return;
  if (!metric_.valid()) metric_ = builder_.add_metric("duration", "nanoseconds");
  const int64_t last = moments.back().time_ns;
  int64_t end = last;
  if (profile.end_ns && *profile.end_ns > last) end = *profile.end_ns;
  else if (moments.size() > 1) end += last - moments[moments.size() - 2].time_ns;
  for (size_t i = 0; i < moments.size(); ++i) {
    auto site = profile.tree.site_of(moments[i].node, "a sample");
    outcome.broken_stacks += !site;
    builder_.add_sample({.time_ns = static_cast<uint64_t>(moments[i].time_ns),
                         .weight = (i + 1 < moments.size() ? moments[i + 1].time_ns : end) - moments[i].time_ns,
                         .thread = profile.thread,
                         .site = site ? *site : profile::CallSiteId(),
                         .metric = metric_});
  }
  outcome.samples += moments.size();
  outcome.first_ns = std::min(outcome.first_ns, moments.front().time_ns);
  outcome.last_ns = std::max(outcome.last_ns, end);
}

V8Profiles::Outcome V8Profiles::finish() {
  Outcome outcome{.malformed = without_time_};
  for (V8Profile& profile : profiles_) {
    add_samples(profile, outcome);
    profile.samples = {};
  }
  return outcome;
}

}  // namespace cprof::format::chrome
