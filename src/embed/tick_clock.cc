#include "embed/tick_clock.h"

#include <cprof/cprof.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

#include "base/clock.h"

extern "C" uint64_t cprof_ticks_by_call_(void) { return cprof::monotonic_ns(); }

namespace cprof::embed {
namespace {

constexpr size_t kMaxPairs = 4096;
constexpr int kTries = 8;

bool counter_is_steady() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);  // "invariant TSC"
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

}  // namespace

void TickClock::choose_source() { cprof_uses_tsc_ = counter_is_steady(); }

// The narrowest of a few brackets: what comes between the two readings only makes one wider.
TickClock::Pair TickClock::take_pair() {
  Pair best;
  uint64_t narrowest = UINT64_MAX;
  for (int n = 0; n < kTries; n++) {
    const uint64_t before = cprof_ticks_(), ns = monotonic_ns(), after = cprof_ticks_();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

void TickClock::calibrate() {
  const Pair pair = take_pair();
  if (!pairs_.empty() && (pair.ticks <= pairs_.back().ticks || pair.ns <= pairs_.back().ns)) return;
  pairs_.push_back(pair);
  if (pairs_.size() > kMaxPairs) thin_out();
}

void TickClock::thin_out() {
  size_t kept = 1;
  for (size_t n = 2; n < pairs_.size(); n += 2) pairs_[kept++] = pairs_[n];
  if (pairs_[kept - 1].ticks != pairs_.back().ticks) pairs_[kept++] = pairs_.back();
  pairs_.resize(kept);
}

uint64_t TickClock::convert(uint64_t value, uint64_t Pair::*from, uint64_t Pair::*into) const {
  if (pairs_.size() < 2) return pairs_.empty() ? 0 : pairs_[0].*into;
  auto after = std::upper_bound(pairs_.begin() + 1, pairs_.end() - 1, value,
                                [&](uint64_t wanted, const Pair& pair) { return wanted < pair.*from; });
  const Pair &low = *(after - 1), &high = *after;
  const __int128 distance = static_cast<__int128>(value) - low.*from;
  const __int128 result = low.*into + distance * static_cast<__int128>(high.*into - low.*into) / static_cast<__int128>(high.*from - low.*from);
  return result < 0 ? 0 : static_cast<uint64_t>(result);
}

uint64_t TickClock::to_ns(uint64_t ticks) const { return convert(ticks, &Pair::ticks, &Pair::ns); }

uint64_t TickClock::to_ticks(uint64_t ns) const { return convert(ns, &Pair::ns, &Pair::ticks); }

}  // namespace cprof::embed
