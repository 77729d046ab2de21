#include "collect/perf/switch_rate.h"

#include <algorithm>
#include <bit>

#include "base/clock.h"

namespace cprof::collect {
namespace {

// A window ends by whichever comes first, so that it is short in a storm and still exact when little happens.
constexpr uint64_t kWindowSwitches = 128, kWindowNs = 50'000'000;
constexpr uint64_t kCalmNs = 500'000'000;
constexpr uint64_t kStaleNs = 1'000'000'000;  // a ring that has been silent for so long counts no more

}  // namespace

void SwitchRate::note(size_t ring, uint64_t time_ns) {
  if (ring >= rings_.size()) rings_.resize(ring + 1);
  Window& window = rings_[ring];
  if (window.switches++ == 0) window.since_ns = time_ns;
  const uint64_t elapsed = time_ns > window.since_ns ? time_ns - window.since_ns : 0;
  if (elapsed >= kWindowNs || window.switches >= kWindowSwitches) end_window(window, time_ns);
}

void SwitchRate::end_window(Window& window, uint64_t time_ns) {
  const uint64_t elapsed = std::max<uint64_t>(time_ns - std::min(time_ns, window.since_ns), 1);
  window.per_second = (window.switches - 1) * kSecondNs / elapsed;
  window.switches = 0;
  uint64_t per_second = 0;
  for (const Window& other : rings_)
    if (other.since_ns + kStaleNs >= time_ns) per_second += other.per_second;
  const uint64_t needed = std::bit_ceil(std::max<uint64_t>(1, (per_second + kMostPerSecond - 1) / kMostPerSecond));
  if (needed >= period_) {
    period_ = needed;
    calm_since_ns_ = 0;
  } else if (calm_since_ns_ == 0) {
    calm_since_ns_ = time_ns;
  } else if (time_ns > calm_since_ns_ + kCalmNs) {
    period_ = needed;
    calm_since_ns_ = 0;
  }
}

}  // namespace cprof::collect
