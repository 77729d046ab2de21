#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analyze/call_tree.h"
#include "analyze/groups.h"
#include "analyze/site_totals.h"
#include "analyze/threads.h"
#include "analyze/top.h"
#include "analyze/weights.h"
#include "base/digit_groups.h"
#include "cli/report_view.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using analyze::Groups;
using analyze::Weights;
using profile::Profile;

constexpr size_t kMostRows = 1000, kMostFramesShown = 64, kFrameColumns = 36;

double share(int64_t part, int64_t whole) { return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole); }

std::string share_cell(int64_t part, int64_t whole) { return right_aligned(percent(share(part, whole)), 8); }

// The innermost frames are at the front.
std::string head_of(std::string_view text, size_t columns) {
  std::string head;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t frame = std::min(rest.find(" < ", 1), rest.size());
    const std::string_view next = rest.substr(0, frame);
    if (columns_of(head) + columns_of(next) + 4 > columns) return head.empty() ? shortened(text, columns) : head + " < …";
    head += next;
    rest.remove_prefix(frame);
  }
  return head;
}

void add_functions(const Profile& profile, const Weights& weights, size_t columns, TopLines& lines) {
  const Groups groups(profile, analyze::Granularity::kFunctions);
  const auto totals = analyze::sum_by_site(profile, weights);
  constexpr size_t kFixed = 30;
  const size_t module_columns = std::clamp<size_t>(columns / 5, 8, 24);
  const size_t name_columns = columns > kFixed + module_columns + 2 ? columns - kFixed - module_columns - 2 : 10;
  lines.header = {fmt::format("{} {} {}  {}  {}", right_aligned("self", 8), right_aligned("total", 8), right_aligned("samples", 10),
                              padded("function", name_columns), "module")};
  for (const analyze::TopRow& row : analyze::top_functions(profile, groups, totals)) {
    if (lines.rows.size() == kMostRows) break;
    const analyze::GroupName name = groups.name(row.group);
    lines.rows.push_back(fmt::format("{} {} {}  {}  {}", share_cell(row.self, weights.total), share_cell(row.total, weights.total),
                                     right_aligned(grouped(row.self), 10), padded(shortened(printable(name.text), name_columns), name_columns),
                                     shortened(printable(name.module), module_columns)));
  }
}

// Equal paths of functions are one stack. The leaf first: what is at its other end is nearly the same everywhere.
void add_stacks(const Profile& profile, const Weights& weights, size_t columns, TopLines& lines) {
  const Groups groups(profile, analyze::Granularity::kFunctions);
  const analyze::CallTree tree = analyze::call_tree(profile, groups, analyze::sum_by_site(profile, weights));
  std::vector<uint32_t> nodes(tree.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0u);
  std::erase_if(nodes, [&](uint32_t node) { return tree.nodes[node].self == 0; });
  std::ranges::stable_sort(nodes, std::ranges::greater{}, [&](uint32_t node) { return tree.nodes[node].self; });
  lines.header = {fmt::format("{} {}  stack, innermost first", right_aligned("share", 8), right_aligned("samples", 10))};
  constexpr size_t kFixed = 21;
  for (uint32_t leaf : nodes) {
    if (lines.rows.size() == kMostRows) break;
    std::string text;
    size_t frames = 0;
    for (uint32_t node = leaf; node != 0 && frames < kMostFramesShown && columns_of(text) < columns; node = tree.nodes[node].parent, frames++)
      text += fmt::format("{}{}", frames ? " < " : "", shortened(printable(groups.name(tree.nodes[node].group).text), kFrameColumns));
    if (columns_of(text) + kFixed > columns) text = head_of(text, columns > kFixed + 3 ? columns - kFixed : 3);
    lines.rows.push_back(fmt::format("{} {}  {}", share_cell(tree.nodes[leaf].self, weights.total),
                                     right_aligned(grouped(tree.nodes[leaf].self), 10), text));
  }
}

void add_tree(const Profile& profile, const Weights& weights, size_t columns, TopLines& lines) {
  const std::string text = render_tree(profile, weights, {.columns = columns});
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    lines.rows.emplace_back(shortened(rest.substr(0, end), columns));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void add_threads(const Profile& profile, const Weights& weights, size_t columns, TopLines& lines) {
  lines.header = {fmt::format("{} {}  {} {}  thread", right_aligned("share", 8), right_aligned("samples", 10), right_aligned("PID", 7), right_aligned("TID", 7))};
  constexpr size_t kFixed = 38;
  const size_t name_columns = columns > kFixed + 8 ? columns - kFixed : 8;
  for (const analyze::ThreadRow& row : analyze::thread_table(profile, weights)) {
    if (lines.rows.size() == kMostRows) break;
    if (!row.thread.valid()) continue;
    const profile::Thread& thread = profile.threads[row.thread.index()];
    const profile::Process& process = profile.processes[thread.process.index()];
    const std::string name = printable(profile.text(thread.name)), owner = printable(profile.text(process.name));
    lines.rows.push_back(fmt::format("{} {}  {:>7} {:>7}  {}", share_cell(row.weight, weights.total), right_aligned(grouped(row.weight), 10),
                                     process.pid, thread.tid, shortened(name == owner ? name : fmt::format("{} of {}", name, owner), name_columns)));
  }
}

}  // namespace

std::string_view name_of(TopPane pane) {
  constexpr std::string_view kNames[] = {"functions", "stacks", "tree", "threads"};
  return kNames[static_cast<size_t>(pane)];
}

Result<TopLines> top_lines(const Profile& profile, TopPane pane, size_t columns) {
  TopLines lines;
  if (profile.samples.empty()) return lines;
  const Weights weights = TRY(view_weights(profile, analyze::WeightSelection::Kind::kSamples));
  lines.title = fmt::format("{} {}", grouped(weights.total), weights.title);
  using Add = void (*)(const Profile&, const Weights&, size_t, TopLines&);
  constexpr Add kAdds[] = {add_functions, add_stacks, add_tree, add_threads};
  kAdds[static_cast<size_t>(pane)](profile, weights, columns, lines);
  return lines;
}

}  // namespace cprof::cli
