// Callers and callees, one block for each function that was looked for.
#include <fmt/format.h>

#include <algorithm>

#include "analyze/neighbours.h"
#include "analyze/shares.h"
#include "cli/report_view.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using analyze::Groups;
using analyze::Neighbour;
using analyze::Neighbourhood;
using analyze::Weights;

class PeekText {
 public:
  PeekText(const Groups& groups, const Weights& weights, const ViewOptions& options)
      : groups_(groups), weights_(weights), options_(options), scale_(whole_, weights.unit) {}

  void add(const Neighbourhood& at) {
    out_ += '\n';
    if (at.as_root != 0) row(at.as_root, "  ", "(nothing: it is the root)");
    neighbours(at.callers, "caller", "callers");
    row(at.total, "▶ ", fmt::format("{}, {} of it self", name(at.group), scale_.text(at.self)));
    neighbours(at.callees, "callee", "callees");
  }

  std::string text(size_t found) const {
    return fmt::format("callers and callees of {}: {}, {} in all\n\n {}            function\n",
                       found == 1 ? "1 match" : fmt::format("{} matches", found), printable(weights_.title),
                       scale_.text(weights_.total), right_aligned("total", kValueColumns)) +
           out_;
  }

 private:
  static constexpr size_t kValueColumns = 12;

  std::string name(uint32_t group) const { return printable(groups_.name(group).text); }

  void row(int64_t value, std::string_view mark, const std::string& text) {
    const double share = whole_ == 0 ? 0 : static_cast<double>(value) / static_cast<double>(whole_);
    out_ += fmt::format(" {} {}  {}{}\n", right_aligned(scale_.text(value), kValueColumns), right_aligned(percent(share), 8), mark,
                        shortened(text, options_.columns > 46 ? options_.columns - 26 : 20));
  }

  void neighbours(const std::vector<Neighbour>& list, std::string_view one, std::string_view many) {
    const size_t shown = std::min(options_.max_rows, list.size());
    for (size_t i = 0; i < shown; ++i) row(list[i].value, "    ", name(list[i].group));
    if (const size_t more = list.size() - shown) out_ += fmt::format("{:>27}{} more {}\n", "", more, more == 1 ? one : many);
  }

  const Groups& groups_;
  const Weights& weights_;
  const int64_t whole_ = analyze::whole_of(weights_);
  const ViewOptions& options_;
  ValueScale scale_;
  std::string out_;
};

}  // namespace

std::string render_peek(const profile::Profile& profile, const Weights& weights, const analyze::Pattern& pattern,
                        const ViewOptions& options) {
  const Groups groups(profile, options.granularity);
  const analyze::CallTree tree = call_tree(profile, groups, analyze::sum_by_site(profile, weights));
  std::vector<bool> is_seen(groups.size());
  for (size_t i = 1; i < tree.nodes.size(); ++i) is_seen[tree.nodes[i].group] = true;
  std::vector<uint32_t> wanted;
  for (uint32_t group = 0; group < groups.size(); ++group)
    if (is_seen[group] && pattern.found_in(groups.name(group).text)) wanted.push_back(group);
  if (wanted.empty()) return {};
  auto found = neighbours_of(tree, wanted, groups.size());
  std::ranges::stable_sort(found, [](const Neighbourhood& a, const Neighbourhood& b) { return a.total > b.total; });
  PeekText text(groups, weights, options);
  for (size_t i = 0; i < std::min(options.max_rows, found.size()); ++i) text.add(found[i]);
  return text.text(found.size());
}

}  // namespace cprof::cli
