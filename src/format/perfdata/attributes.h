// The events of a perf.data: their attrs, ids, names and what they become as metrics. Private to perfdata.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "event/event.h"

namespace cprof::format::perfdata {

struct FileEvent {
  perf_event_attr attr{};
  std::vector<uint64_t> ids;
  std::string name;  // empty: as the numbers say
};

// bytes: as much as the file says an attr has; shorter ones are older, longer ones newer. The flag bits of the other
// byte order lie mirrored in their bytes.
perf_event_attr parse_attr(std::span<const std::byte> bytes, bool swap);

// True for an event whose samples nobody wants: perf's own side band.
bool is_side_band(const perf_event_attr& attr);
event::Metric metric_of(const FileEvent& event);

}  // namespace cprof::format::perfdata
