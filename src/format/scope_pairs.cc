#include "format/scope_pairs.h"

#include <algorithm>
#include <iterator>

namespace cprof::format {
namespace {

using profile::Label;
using profile::LabelSetId;
using profile::Profile;
using profile::Slice;

constexpr size_t kSearched = 1024;  // open slices among which an end looks for its name

}  // namespace

uint32_t LanePairs::begin(const Edge& edge) {
  auto& slices = builder_.profile().slices;
  const auto row = static_cast<uint32_t>(slices.size());
  slices.push_back({.name = edge.name,
                    .category = edge.category,
                    .start_ns = static_cast<uint64_t>(edge.time_ns),
                    .labels = edge.labels});
  // An end may stand before its begin when both have the same time.
  if (edge.time_ns == early_ns_ && edge.name == early_name_) {
    early_name_ = profile::kNoText;
    --counts_.unmatched_ends;
    return row;
  }
  open_.push_back({row, edge.name});
  return row;
}

void LanePairs::end(const Edge& edge) {
  auto found = open_.rbegin();
  const auto last = open_.size() > kSearched ? open_.rbegin() + kSearched : open_.rend();
  if (edge.name != profile::kNoText) found = std::find_if(found, last, [&](const Open& o) { return o.name == edge.name; });
  if (found == last) {
    ++counts_.unmatched_ends;
    early_ns_ = edge.time_ns;
    early_name_ = edge.name;
    return;
  }
  const bool is_newest = found == open_.rbegin();
  const bool is_told = edge.name != profile::kNoText || open_.size() == 1;
  counts_.not_nested += !is_newest || !is_told;
  Slice& slice = builder_.profile().slices[found->row];
  slice.duration_ns = static_cast<uint64_t>(edge.time_ns) - slice.start_ns;
  add_labels(slice, edge.labels);
  open_.erase(std::next(found).base());
}

void LanePairs::add_labels(Slice& slice, LabelSetId more) {
  if (!more.valid() || !slice.labels.valid()) {
    slice.labels = more.valid() ? more : slice.labels;
    return;
  }
  const Profile& profile = builder_.profile();
  std::vector<Label> labels;
  for (LabelSetId id : {slice.labels, more}) {
    const auto set = profile.labels_of(id);
    labels.insert(labels.end(), set.begin(), set.end());
  }
  slice.labels = builder_.label_set(labels);
}

void LanePairs::close_all() {
  for (const Open& open : open_) {
    Slice& slice = builder_.profile().slices[open.row];
    slice.duration_ns = static_cast<uint64_t>(end_of_trace_) - slice.start_ns;
    slice.is_open = true;
  }
  counts_.open += open_.size();
  open_.clear();
  early_name_ = profile::kNoText;
}

std::vector<uint32_t> in_lanes(const std::vector<Edge>& edges, size_t lanes) {
  std::vector<uint32_t> next(lanes + 1);
  for (const Edge& edge : edges) ++next[edge.lane + 1];
  for (size_t i = 1; i <= lanes; ++i) next[i] += next[i - 1];
  std::vector<uint32_t> rows(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) rows[next[edges[i].lane]++] = static_cast<uint32_t>(i);
  auto by_time = [&](uint32_t a, uint32_t b) { return edges[a].time_ns < edges[b].time_ns; };
  for (size_t i = 0; i < lanes; ++i) {
    const auto first = rows.begin() + (i ? next[i - 1] : 0), last = rows.begin() + next[i];
    if (!std::is_sorted(first, last, by_time)) std::stable_sort(first, last, by_time);
  }
  return rows;
}

}  // namespace cprof::format
