#include "format/perfdata/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "event/known_events.h"

namespace cprof::format::perfdata {
namespace {

constexpr size_t kFlagsOffset = 40;  // of perf_event_attr: the 64 single-bit fields

uint64_t mirror_bits_in_bytes(uint64_t value) {
  uint64_t result = 0;
  for (unsigned bit = 0; bit < 64; bit++)
    if (value >> bit & 1) result |= uint64_t{1} << (bit / 8 * 8 + (7 - bit % 8));
  return result;
}

std::string name_of(const perf_event_attr& attr) {
  for (const event::KnownEvent& known : event::kKnownEvents)
    if (known.type == attr.type && known.config == attr.config) return std::string(known.name);
  if (attr.type == PERF_TYPE_RAW) return fmt::format("r{:x}", uint64_t{attr.config});
  return fmt::format("event-{}-{:x}", uint32_t{attr.type}, uint64_t{attr.config});
}

}  // namespace

perf_event_attr parse_attr(std::span<const std::byte> bytes, bool swap) {
  perf_event_attr attr{};
  // Absent fields of an older attr are 0: read from a padded copy.
  std::byte padded[sizeof(perf_event_attr)] = {};
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(padded)), padded);
  ByteReader in(padded, swap);
  attr.type = in.u32();
  attr.size = in.u32();
  attr.config = in.u64();
  attr.sample_period = in.u64();
  attr.sample_type = in.u64();
  attr.read_format = in.u64();
  ByteReader plain(std::span<const std::byte>(padded).subspan(kFlagsOffset));
  uint64_t flags = swap ? mirror_bits_in_bytes(plain.u64()) : plain.u64();
  memcpy(reinterpret_cast<std::byte*>(&attr) + kFlagsOffset, &flags, sizeof(flags));
  in.skip(8);
  attr.wakeup_events = in.u32();
  attr.bp_type = in.u32();
  attr.config1 = in.u64();
  attr.config2 = in.u64();
  attr.branch_sample_type = in.u64();
  attr.sample_regs_user = in.u64();
  attr.sample_stack_user = in.u32();
  attr.clockid = static_cast<int32_t>(in.u32());
  attr.sample_regs_intr = in.u64();
  return attr;
}

bool is_side_band(const perf_event_attr& attr) {
  return attr.type == PERF_TYPE_SOFTWARE && attr.config == PERF_COUNT_SW_DUMMY;
}

event::Metric metric_of(const FileEvent& event) {
  const perf_event_attr& attr = event.attr;
  event::Metric metric{.name = event.name.empty() ? name_of(attr) : event.name, .unit = "count", .type = attr.type,
                       .config = attr.config};
  auto known = std::ranges::find_if(event::kKnownEvents, [&](const event::KnownEvent& k) {
    return k.type == attr.type && k.config == attr.config;
  });
  if (known != std::end(event::kKnownEvents) && known->is_time) metric.is_time = true, metric.unit = "nanoseconds";
  (attr.freq ? metric.freq_hz : metric.period) = attr.sample_period;
  return metric;
}

}  // namespace cprof::format::perfdata
