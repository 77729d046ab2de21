#include "uprobe/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cprof::uprobe {

uint64_t LatencyHistogram::lowest_of(uint32_t bucket) {
  if (bucket < UPROBE_SUBS) return bucket;
  const uint32_t log = bucket / UPROBE_SUBS - 1;
  return (UPROBE_SUBS + bucket % UPROBE_SUBS) * (uint64_t{1} << log);
}

uint64_t LatencyHistogram::width_of(uint32_t bucket) { return bucket < UPROBE_SUBS ? 1 : uint64_t{1} << (bucket / UPROBE_SUBS - 1); }

uint64_t LatencyHistogram::count() const { return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}); }

uint64_t LatencyHistogram::quantile(double share) const {
  const uint64_t all = count();
  if (all == 0) return 0;
  const auto wanted = std::clamp<uint64_t>(static_cast<uint64_t>(std::ceil(share * static_cast<double>(all))), 1, all);
  uint64_t before = 0;
  for (uint32_t i = 0; i < UPROBE_BUCKETS; i++) {
    if (before + buckets[i] < wanted) {
      before += buckets[i];
      continue;
    }
    // As if those of a bucket were spread evenly in it.
    const double part = (static_cast<double>(wanted - before) - 0.5) / static_cast<double>(buckets[i]);
    return lowest_of(i) + static_cast<uint64_t>(part * static_cast<double>(width_of(i)));
  }
  return 0;
}

std::vector<LatencyHistogram::Power> LatencyHistogram::by_powers() const {
  std::vector<Power> powers;
  for (uint32_t i = 0; i < UPROBE_BUCKETS; i++) {
    const uint64_t lowest = lowest_of(i);
    const uint64_t from = lowest == 0 ? 0 : uint64_t{1} << (63 - static_cast<unsigned>(__builtin_clzll(lowest)));
    if (powers.empty() || powers.back().from_ns != from) powers.push_back({from, from == 0 ? 1 : from * 2, 0});
    powers.back().count += buckets[i];
  }
  auto is_used = [](const Power& power) { return power.count != 0; };
  powers.erase(powers.begin(), std::ranges::find_if(powers, is_used));
  while (!powers.empty() && !is_used(powers.back())) powers.pop_back();
  return powers;
}

uint64_t FunctionSums::unfinished() const {
  const uint64_t known = finished + unwound + untimed;
  return calls > known ? calls - known : 0;
}

uint64_t FunctionSums::quantile(double share) const { return std::clamp(histogram.quantile(share), least_ns, std::max(least_ns, most_ns)); }

FunctionSums sums_of(const uprobe_row& row) {
  FunctionSums sums;
  sums.calls = row.calls;
  sums.finished = row.finished;
  sums.unwound = row.unwound;
  sums.untimed = row.untimed;
  sums.total_ns = row.total_ns;
  sums.raw_ns = row.raw_ns;
  sums.least_ns = row.finished ? ~row.inverted_least_ns : 0;
  sums.most_ns = row.most_ns;
  return sums;
}

}  // namespace cprof::uprobe
