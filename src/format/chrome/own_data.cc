#include "format/chrome/own_data.h"

#include <fmt/format.h>

#include "format/json/json_number.h"

namespace cprof::format::chrome {
namespace {

using profile::MetricId;
using profile::RunInfo;

constexpr unsigned kMaxDepth = 4;
constexpr size_t kMaxTexts = 4096, kMaxTextBytes = 4096;

}  // namespace

JsonTokenizer::Token OwnData::parse(JsonTokenizer& json) { return parse_object(json, {}, 0); }

JsonTokenizer::Token OwnData::parse_object(JsonTokenizer& json, std::string_view prefix, unsigned depth) {
  std::string key(prefix);
  while (true) {
    Token token = json.next();
    if (token != Token::kKey) return token;
    key.resize(prefix.size());
    key += json.text();
    token = json.next();
    if (token == Token::kBeginObject && depth + 1 < kMaxDepth) {
      token = parse_object(json, key + ".", depth + 1);
      if (JsonTokenizer::is_over(token)) return token;
      continue;
    }
    const bool is_text = token == Token::kText || token == Token::kNumber;
    if (is_text && texts_.size() < kMaxTexts && key.size() + json.text().size() < kMaxTextBytes)
      texts_[key] = json.text();
    if (token == Token::kTrue) texts_[key] = "1";
    token = json.skip(token);
    if (JsonTokenizer::is_over(token)) return token;
  }
}

uint64_t OwnData::number(std::string_view key) const {
  const auto found = texts_.find(key);
  const auto value = found == texts_.end() ? std::nullopt : whole_number(found->second);
  return value && *value > 0 ? static_cast<uint64_t>(*value) : 0;
}

MetricId OwnData::metric(StringId name) {
  if (name == profile::kNoText) name = builder_.intern("samples");
  auto [it, is_new] = metrics_.try_emplace(name);
  if (is_new) it->second = builder_.add_metric(builder_.profile().text(name), "count");
  return it->second;
}

bool OwnData::is_own() const {
  const auto tool = texts_.find("tool");
  return tool != texts_.end() && tool->second.starts_with(kOwnTool);
}

void OwnData::apply() {
  profile::Profile& profile = builder_.profile();
  RunInfo& run = profile.run;
  if (!is_own()) {
    for (const auto& [key, text] : texts_) run.comments.push_back(fmt::format("{}: {}", key, text));
    return;
  }
  run.tool = texts_.at("tool");
  struct TextField {
    std::string_view key;
    std::string RunInfo::* into;
  };
  for (const TextField& field : {TextField{"command", &RunInfo::command}, {"hostname", &RunInfo::hostname},
                                 {"kernel_release", &RunInfo::kernel_release}})
    if (const auto found = texts_.find(field.key); found != texts_.end()) run.*field.into = found->second;
  run.start_ns = number("start_ns");
  run.end_ns = number("end_ns");
  run.start_realtime_ns = number("start_realtime_ns");
  run.sampling_interval_ns = number("sampling_interval_ns");
  run.has_switches = number("has_switches") != 0;
  run.has_off_cpu = number("has_off_cpu") != 0;
  for (auto& [name, id] : metrics_) {
    const std::string key = fmt::format("metrics.{}.", profile.text(name));
    profile::Metric& metric = profile.metrics[id.index()];
    if (const auto unit = texts_.find(key + "unit"); unit != texts_.end()) metric.unit = builder_.intern(unit->second);
    metric.period = number(key + "period");
    metric.is_time = number(key + "is_time") != 0;
  }
  if (const auto name = texts_.find("default_metric"); name != texts_.end()) run.default_metric = builder_.intern(name->second);
  for (profile::Track& track : profile.tracks)
    if (const auto unit = texts_.find(fmt::format("units.{}", profile.text(track.name))); unit != texts_.end())
      track.unit = builder_.intern(unit->second);
}

}  // namespace cprof::format::chrome
