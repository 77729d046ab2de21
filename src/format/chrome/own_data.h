// What our own Chrome traces say in "otherData" beyond the events: the run and the metrics of its samples. Used by the
// Chrome trace reader; other programs' otherData becomes comments.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "format/json/tokenizer.h"
#include "profile/builder.h"

namespace cprof::format::chrome {

inline constexpr std::string_view kOwnTool = "cprof";
// The categories that our writer gives to slices without one.
inline constexpr std::string_view kSliceCategory = "function", kAsyncCategory = "async";

class OwnData {
 public:
  explicit OwnData(profile::ProfileBuilder& builder) : builder_(builder) {}

  // The object whose opening bracket was the newest token. Gives its last token, kEnd or kBad.
  JsonTokenizer::Token parse(JsonTokenizer& json);

  bool is_own() const;  // the trace is one of ours
  // Fills in the run and the units of counters. After everything was read.
  void apply();
  // The metric of that name: as told, else a count. "" is "samples".
  profile::MetricId metric(StringId name);

 private:
  using Token = JsonTokenizer::Token;
  using Texts = std::map<std::string, std::string, std::less<>>;

  Token parse_object(JsonTokenizer& json, std::string_view prefix, unsigned depth);
  uint64_t number(std::string_view key) const;

  profile::ProfileBuilder& builder_;
  Texts texts_;  // "metrics.0.name"
  std::map<StringId, profile::MetricId> metrics_;
};

}  // namespace cprof::format::chrome
