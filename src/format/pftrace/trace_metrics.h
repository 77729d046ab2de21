// The metrics of a Perfetto trace's samples, by what each sequence's defaults tell. Used by the pftrace reader.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "format/pftrace/proto_fields.h"
#include "profile/builder.h"

namespace cprof::format {

struct SampleMetric {
  profile::MetricId id{};
  int64_t weight = 1;  // of a sample that tells none
};

class TraceMetrics {
 public:
  explicit TraceMetrics(profile::ProfileBuilder& builder) : builder_(builder) {}

  SampleMetric perf(ProtoFields defaults);     // PerfSampleDefaults; empty: cpu-clock
  SampleMetric stack(ProtoFields descriptor);  // a StackSample's counter
  SampleMetric named(StringId name);           // "": "samples"

 private:
  struct Timebase {
    uint64_t period = 0, frequency = 0;
    uint32_t counter = 1;
    std::string_view name;
  };
  static Timebase read_timebase(ProtoFields fields);
  static std::string_view read_tracepoint(ProtoFields fields);
  profile::MetricId metric(std::string_view name, std::string_view unit, uint64_t period, bool is_time);

  profile::ProfileBuilder& builder_;
  std::map<std::string, profile::MetricId, std::less<>> metrics_;
};

}  // namespace cprof::format
