#include "page/source_parts.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace cprof::page {
namespace {

constexpr double kLeastShare = 0.001;  // of any metric, by its own code
constexpr size_t kMostFunctions = 2000;
constexpr uint32_t kAround = 12;       // lines before the first and after the last that the profile knows
constexpr uint32_t kMostLines = 2000;  // of one function
constexpr size_t kMostBytes = 4 << 20;

struct Range {
  uint32_t first = 0, last = 0;  // 0: none

  void add(uint32_t line) {
    if (line == 0) return;
    first = first == 0 ? line : std::min(first, line);
    last = std::max(last, line);
  }
};

// By function: the largest share that its own code has of any metric.
std::vector<double> shares(const LineTree& tree, const PageValues& values) {
  std::vector<double> totals(values.metrics.size());
  for (const ValueRow& row : values.rows)
    for_each_metric(values, row, [&](uint32_t m, int64_t v) { totals[m] += std::fabs(static_cast<double>(v)); });
  const size_t functions = tree.functions().size();
  std::vector<double> sums(functions * totals.size());
  for (const ValueRow& row : values.rows) {
    if (row.node == LineTree::kRoot) continue;
    const size_t function = tree.nodes()[row.node].function;
    for_each_metric(values, row, [&](uint32_t m, int64_t v) { sums[function * totals.size() + m] += std::fabs(static_cast<double>(v)); });
  }
  std::vector<double> result(functions);
  for (size_t i = 0; i < sums.size(); ++i)
    if (const double total = totals[i % totals.size()]; total > 0) result[i / totals.size()] = std::max(result[i / totals.size()], sums[i] / total);
  return result;
}

std::vector<Range> ranges_of(const LineTree& tree) {
  std::vector<Range> ranges(tree.functions().size());
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i].add(tree.functions()[i].start_line);
  for (size_t i = 1; i < tree.nodes().size(); ++i) ranges[tree.nodes()[i].function].add(tree.nodes()[i].line);
  for (Range& range : ranges) {
    if (range.first == 0) continue;
    range.first = range.first > kAround ? range.first - kAround : 1;
    range.last = std::min(range.last + kAround, range.first + kMostLines - 1);
  }
  return ranges;
}

// Neighbours that touch become one.
void join(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, {}, &Range::first);
  size_t kept = 0;
  for (const Range& range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].last + 1) ranges[kept - 1].last = std::max(ranges[kept - 1].last, range.last);
    else ranges[kept++] = range;
  }
  ranges.resize(kept);
}

}  // namespace

std::vector<SourcePart> source_parts(const profile::Profile& profile, const LineTree& tree, const PageValues& values,
                                     source::SourceFiles& files) {
  const std::vector<double> share = shares(tree, values);
  const std::vector<Range> ranges = ranges_of(tree);
  std::vector<uint32_t> wanted;
  for (uint32_t i = 0; i < share.size(); ++i)
    if (share[i] >= kLeastShare && !tree.functions()[i].file.empty() && ranges[i].first != 0) wanted.push_back(i);
  std::ranges::stable_sort(wanted, [&](uint32_t a, uint32_t b) { return share[a] > share[b]; });
  if (wanted.size() > kMostFunctions) wanted.resize(kMostFunctions);

  std::map<std::string_view, std::vector<Range>> of_file;
  size_t bytes = 0;
  for (const uint32_t i : wanted) {
    const auto text = files.find(tree.functions()[i].file);
    if (!text) continue;
    for (uint32_t line = ranges[i].first; line <= ranges[i].last && line <= (*text)->size(); ++line) bytes += (*text)->line(line).size() + 1;
    if (bytes > kMostBytes) break;
    of_file[tree.functions()[i].file].push_back(ranges[i]);
  }

  std::vector<SourcePart> parts;
  const auto recorded = static_cast<int64_t>(profile.run.start_realtime_ns);
  for (auto& [file, list] : of_file) {
    const auto text = *files.find(file);
    join(list);
    for (const Range& range : list) {
      SourcePart part{.file = file, .first_line = range.first, .text = {}, .is_changed = recorded != 0 && text->changed_ns() > recorded};
      for (uint32_t line = range.first; line <= range.last && line <= text->size(); ++line) (part.text += text->line(line)) += '\n';
      if (!part.text.empty()) parts.push_back(std::move(part));
    }
  }
  return parts;
}

}  // namespace cprof::page
