// The call tree as indented text. A function with one caller below another stays in its column; only where calls branch
// does the text move right, so that deep stacks stay readable. Far right, the leftmost guides give way.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/call_tree.h"
#include "analyze/shares.h"
#include "base/digit_groups.h"
#include "cli/report_view.h"
#include "cli/text_layout.h"

namespace cprof::cli {
namespace {

using analyze::CallTree;
using analyze::GroupName;
using analyze::Groups;
using analyze::TreeNode;
using analyze::Weights;
using profile::Profile;

constexpr uint32_t kGuideColumns = 3;
constexpr uint32_t kMaxGuides = 14;

// Which of the branches above still have siblings to come: one bit each, the nearest lowest.
struct Guides {
  uint64_t more = 0;
  uint32_t count = 0;

  Guides deeper(bool has_more) const { return {more << 1 | (has_more ? 1u : 0u), count + 1}; }
  std::string text() const {
    const uint32_t shown = std::min(count, kMaxGuides);
    std::string out = shown < count ? "⋯ " : "";
    for (uint32_t i = shown; i-- > 0;) out += more >> i & 1 ? "│  " : "   ";
    return out;
  }
  size_t columns() const { return std::min(count, kMaxGuides) * kGuideColumns + (count > kMaxGuides ? 2 : 0); }
};

enum class Joint : uint8_t { kNone, kMiddle, kLast };  // how a node hangs on the one above

struct Pending {
  uint32_t node = 0;
  Guides guides;
  Joint joint = Joint::kNone;
  size_t depth = 1;  // in lines: recursion that was joined counts once
};

class TreeText {
 public:
  TreeText(const Profile& profile, const Weights& weights, const ViewOptions& options)
      : weights_(weights),
        options_(options),
        groups_(profile, options.granularity),
        tree_(call_tree(profile, groups_, analyze::sum_by_site(profile, weights))),
        sizes_(tree_.nodes.size()) {
    for (size_t i = sizes_.size(); i-- > 0;) {
      const int64_t self = std::max(tree_.nodes[i].self, -INT64_MAX);
      sizes_[i] = analyze::add_clamped(sizes_[i], std::abs(self));
      if (i != 0) sizes_[tree_.nodes[i].parent] = analyze::add_clamped(sizes_[tree_.nodes[i].parent], sizes_[i]);
    }
  }

  std::string text() {
    const ValueScale scale(whole_, weights_.unit);
    out_ = fmt::format("call tree: {}, {} in all\n\n    total     self\n", printable(weights_.title),
                       scale.text(weights_.total));
    push_children(0, Guides(), 1);
    while (!todo_.empty()) {
      const Pending next = todo_.back();
      todo_.pop_back();
      add(next);
    }
    if (hidden_ != 0)
      out_ += fmt::format("\n not shown: {} of less than {}\n",
                          grouped(static_cast<int64_t>(hidden_)) + (hidden_ == 1 ? " branch" : " branches"),
                          percent(options_.min_share));
    if (is_cut_) out_ += fmt::format("\n not shown: calls more than {} deep (--depth)\n", options_.max_depth);
    return std::move(out_);
  }

 private:
  double share(int64_t value) const {
    return whole_ == 0 ? 0 : static_cast<double>(value) / static_cast<double>(whole_);
  }

  std::vector<uint32_t> shown_children(uint32_t node) const {
    std::vector<uint32_t> shown;
    for (uint32_t child : tree_.children(node))
      if (std::abs(share(sizes_[child])) >= options_.min_share) shown.push_back(child);
    return shown;
  }

  void push_children(uint32_t node, const Guides& guides, size_t depth) {
    const std::vector<uint32_t> shown = shown_children(node);
    hidden_ += tree_.nodes[node].child_count - shown.size();
    if (shown.size() == 1) return todo_.push_back({shown[0], guides, Joint::kNone, depth});
    for (size_t i = shown.size(); i-- > 0;)
      todo_.push_back({shown[i], guides, i + 1 == shown.size() ? Joint::kLast : Joint::kMiddle, depth});
  }

  // Direct recursion is one line: returns the last node of a run of equal groups and joins their self weights.
  uint32_t skip_recursion(uint32_t node, int64_t& self, uint64_t& levels) {
    while (true) {
      const std::vector<uint32_t> shown = shown_children(node);
      if (shown.size() != 1 || tree_.nodes[shown[0]].group != tree_.nodes[node].group) return node;
      hidden_ += tree_.nodes[node].child_count - 1;
      node = shown[0];
      self = analyze::add_clamped(self, tree_.nodes[node].self);
      ++levels;
    }
  }

  void add(const Pending& at) {
    const TreeNode& node = tree_.nodes[at.node];
    int64_t self = node.self;
    uint64_t levels = 1;
    const uint32_t last = skip_recursion(at.node, self, levels);
    std::string prefix = at.guides.text();
    size_t used = 21 + at.guides.columns();
    Guides below = at.guides;
    if (at.joint != Joint::kNone) {
      prefix += at.joint == Joint::kLast ? "└─ " : "├─ ";
      used += kGuideColumns;
      below = at.guides.deeper(at.joint == Joint::kMiddle);
    }
    out_ += fmt::format(" {} {}  {}{}\n", right_aligned(percent(share(node.total)), 8),
                        right_aligned(percent(share(self)), 8), prefix, label(node, levels, used));
    if (tree_.nodes[last].child_count == 0) return;
    if (at.depth >= options_.max_depth) {
      is_cut_ = true;
    } else {
      push_children(last, below, at.depth + 1);
    }
  }

  std::string label(const TreeNode& node, uint64_t levels, size_t used) const {
    const GroupName name = groups_.name(node.group);
    std::string suffix;
    if (levels > 1) suffix += fmt::format(" × {}", grouped(static_cast<int64_t>(levels)));
    if (name.kind == profile::FrameKind::kKernel) suffix += " [k]";
    if (name.is_inlined) suffix += " (inlined)";
    const size_t taken = used + columns_of(suffix);
    const size_t room = options_.columns > taken + 16 ? options_.columns - taken : 16;
    return shortened(printable(name.text), room) + suffix;
  }

  const Weights& weights_;
  const int64_t whole_ = analyze::whole_of(weights_);
  const ViewOptions& options_;
  Groups groups_;
  CallTree tree_;
  std::vector<int64_t> sizes_;  // by node: what lies below, whatever its sign; a net of 0 may hide a lot
  std::vector<Pending> todo_;
  uint64_t hidden_ = 0;
  bool is_cut_ = false;
  std::string out_;
};

}  // namespace

std::string render_tree(const Profile& profile, const Weights& weights, const ViewOptions& options) {
  return TreeText(profile, weights, options).text();
}

}  // namespace cprof::cli
