#include "cli/cpustat_run.h"

#include <algorithm>

#include "base/clock.h"

namespace cprof::cli {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kLongestWaitNs = 100 * kMillisecondNs;  // a command's end and a signal are noticed after that

}  // namespace

Result<void> CpustatRun::start() {
  TRY(source_->start());
  start_ns_ = last_ns_ = TRY(source_->read(sums_));
  intervals_.begin(start_ns_, sums_);
  return {};
}

// False: nothing is left to look at.
Result<bool> CpustatRun::take_interval(CpustatScreen& screen) {
  last_ns_ = TRY(source_->read(sums_));
  const cpustat::Interval interval = intervals_.next(last_ns_, sums_);
  totals_.add(interval);
  taken_++;
  TRY(screen.show(interval));
  return !options_.ends_with_threads || std::ranges::any_of(sums_, [](const auto& thread) { return !thread.has_ended; });
}

Result<void> CpustatRun::go_on(CpustatScreen& screen, const std::function<bool()>& has_ended) {
  const uint64_t end_ns = options_.duration_ns ? start_ns_ + options_.duration_ns : ~uint64_t{0};
  uint64_t next_ns = start_ns_ + screen.interval_ns();
  uint64_t look_ns = start_ns_ + std::min(source_->look_after_ns(), end_ns - start_ns_);
  bool wants_more = true, has_threads = true;
  while (wants_more && has_threads && monotonic_ns() < end_ns && !has_ended()) {
    const uint64_t now = monotonic_ns();
    next_ns = std::min(next_ns, now + screen.interval_ns());  // it may have become shorter
    const uint64_t until = std::min({next_ns, look_ns, end_ns, now + kLongestWaitNs});
    if (until > now) wants_more = screen.wait(static_cast<int>((until - now + kMillisecondNs - 1) / kMillisecondNs));
    if (const uint64_t after = monotonic_ns(); after >= next_ns) {
      has_threads = TRY(take_interval(screen));
      next_ns = std::max(next_ns + screen.interval_ns(), after);
    } else if (after >= look_ns) {
      source_->look();
    } else {
      continue;
    }
    look_ns = monotonic_ns() + std::min(source_->look_after_ns(), kLongestWaitNs * 100);
    if (options_.count && taken_ >= options_.count) return {};
  }
  // What came since the last whole interval.
  if (has_threads && monotonic_ns() > last_ns_ + kMillisecondNs) TRY(take_interval(screen));
  return {};
}

}  // namespace cprof::cli
