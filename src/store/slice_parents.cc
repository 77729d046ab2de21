#include "store/slice_parents.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace cprof::store {
namespace {

using profile::Slice;

auto lane_of(const Slice& slice) {
  return slice.track.valid() ? std::pair(true, slice.track.value) : std::pair(false, slice.thread.value);
}

}  // namespace

std::vector<std::optional<int64_t>> slice_parents(const profile::Profile& profile, size_t first) {
  const std::vector<Slice>& slices = profile.slices;
  std::vector<std::optional<int64_t>> parents(slices.size() - std::min(first, slices.size()));
  std::vector<size_t> order(parents.size());
  std::iota(order.begin(), order.end(), first);
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return std::tuple(lane_of(slices[i]), slices[i].start_ns, slices[i].depth);
  });
  std::vector<size_t> open;  // the last slice of each depth below the one at hand
  for (size_t k = 0; k < order.size(); ++k) {
    const Slice& slice = slices[order[k]];
    if (k == 0 || lane_of(slices[order[k - 1]]) != lane_of(slice)) open.clear();
    auto has_ended = [&](size_t i) { return slices[i].start_ns + slices[i].duration_ns < slice.start_ns; };
    while (!open.empty() && (slices[open.back()].depth >= slice.depth || has_ended(open.back()))) open.pop_back();
    if (!open.empty() && slices[open.back()].depth + 1 == slice.depth)
      parents[order[k] - first] = static_cast<int64_t>(open.back());
    open.push_back(order[k]);
  }
  return parents;
}

}  // namespace cprof::store
