#include "format/pftrace/trace_metrics.h"

#include <algorithm>
#include <array>

#include "format/pftrace/known_counters.h"
#include "format/pftrace/pftrace_fields.h"

namespace cprof::format {

using profile::MetricId;

MetricId TraceMetrics::metric(std::string_view name, std::string_view unit, uint64_t period, bool is_time) {
  auto [it, is_new] = metrics_.try_emplace(std::string(name));
  if (is_new) it->second = builder_.add_metric(name, unit, period, is_time);
  return it->second;
}

std::string_view TraceMetrics::read_tracepoint(ProtoFields fields) {
  std::string_view name;
  while (fields.next()) {
    if (fields.tag() == pft::Defaults::kTracepointName) name = fields.get_text();
    else fields.skip();
  }
  return name;
}

TraceMetrics::Timebase TraceMetrics::read_timebase(ProtoFields fields) {
  Timebase base;
  while (fields.next()) {
    switch (fields.tag()) {
      case pft::Defaults::kPeriod: base.period = fields.get_uint64(); break;
      case pft::Defaults::kFrequency: base.frequency = fields.get_uint64(); break;
      case pft::Defaults::kCounter: base.counter = fields.get_uint32(); break;
      case pft::Defaults::kName: base.name = fields.get_text(); break;
      case pft::Defaults::kTracepoint:
        if (const std::string_view name = read_tracepoint(fields.get_message()); base.name.empty()) base.name = name;
        break;
      default: fields.skip();
    }
  }
  return base;
}

SampleMetric TraceMetrics::perf(ProtoFields defaults) {
  Timebase base;
  while (defaults.next()) {
    if (defaults.tag() == pft::Defaults::kTimebase) base = read_timebase(defaults.get_message());
    else defaults.skip();
  }
  if (base.name.empty()) {
    const auto known = std::ranges::find(kKnownCounters, base.counter, &KnownCounter::number);
    base.name = known == kKnownCounters.end() ? "samples" : known->name;
  }
  const auto known = std::ranges::find(kKnownCounters, base.name, &KnownCounter::name);
  const bool is_time = known != kKnownCounters.end() && known->is_time;
  const uint64_t interval = base.frequency && base.frequency <= 1'000'000'000 ? 1'000'000'000 / base.frequency : 0;
  if (is_time && !base.period) base.period = interval;
  uint64_t& sampling_interval = builder_.profile().run.sampling_interval_ns;
  if (!sampling_interval) sampling_interval = interval;
  const int64_t weight = base.period && base.period <= INT64_MAX ? static_cast<int64_t>(base.period) : 1;
  return {metric(base.name, is_time ? "nanoseconds" : "count", base.period, is_time), weight};
}

SampleMetric TraceMetrics::stack(ProtoFields descriptor) {
  constexpr std::array<std::string_view, 5> kUnits = {"count", "nanoseconds", "cycles", "instructions", "bytes"};
  std::string_view name = "samples", unit = "count";
  while (descriptor.next()) {
    switch (descriptor.tag()) {
      case pft::StackSample::kName: name = descriptor.get_text(); break;
      case pft::StackSample::kUnitText: unit = descriptor.get_text(); break;
      case pft::StackSample::kUnit: {
        const uint32_t number = descriptor.get_uint32();
        if (number < kUnits.size()) unit = kUnits[number];
        break;
      }
      default: descriptor.skip();
    }
  }
  return {metric(name, unit, 0, false), 1};
}

SampleMetric TraceMetrics::named(StringId name) {
  const std::string_view text = builder_.profile().text(name);
  return {metric(text.empty() ? "samples" : text, "count", 0, false), 1};
}

}  // namespace cprof::format
