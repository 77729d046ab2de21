// Values are first summed by (thread, site), which costs one look-up a sample; only then are texts made, once for each
// different stack, and equal texts (two addresses in one function) fall together in the tree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/frames.h"
#include "base/container_name.h"
#include "format/folded/folded.h"
#include "format/folded/folded_tree.h"
#include "format/frame_text.h"
#include "format/values.h"
#include "profile/frame_name.h"

namespace cprof::format {
namespace {

using profile::FrameKind;
using profile::Profile;

struct Group {
  profile::ThreadId thread;
  profile::CallSiteId site;
  bool is_cut = false;
  int64_t value = 0;
};

std::vector<Group> group_values(const Profile& profile, const ValueChoice& choice) {
  std::vector<Group> groups;
  profile::RowIndex index;
  for_each_value(profile, choice, [&](const StackValue& v) {
    const bool is_cut = analyze::is_cut(v.end);
    const uint64_t hash = profile::hash_join(profile::hash_join(v.thread.value, v.site.value), is_cut);
    auto equal = [&](uint32_t row) {
      return groups[row].thread == v.thread && groups[row].site == v.site && groups[row].is_cut == is_cut;
    };
    const uint32_t row = index.find_or_add(hash, equal, [&] {
      groups.push_back({v.thread, v.site, is_cut, 0});
      return static_cast<uint32_t>(groups.size() - 1);
    });
    groups[row].value = add_clamped(groups[row].value, v.value);
  });
  // Neighbouring sites share most of their stack, and the walker goes on from the last one.
  std::ranges::sort(groups, {}, [](const Group& g) { return std::tuple(g.thread, g.site, g.is_cut); });
  return groups;
}

std::string_view suffix_of(FrameKind kind) {
  if (kind == FrameKind::kKernel) return "_[k]";
  return kind == FrameKind::kJit ? "_[j]" : "";
}

class FoldedWriter {
 public:
  FoldedWriter(const Profile& profile, const WriteOptions& options)
      : profile_(profile), options_(options), walker_(profile), texts_(profile.locations.size()) {}

  FoldedTree::Node add(const Group& group) {
    auto end = group.is_cut ? profile::StackEnd::kMaxDepth : profile::StackEnd::kComplete;
    auto frames = walker_.frames(group.site, end);
    const FoldedTree::Node root = thread_node(group.thread, frames.size());
    // Neighbours share most of their path.
    if (path_.empty() || path_[0].node != root) path_.assign(1, {{}, root});
    size_t shared = 0;
    while (shared < frames.size() && shared + 1 < path_.size() && path_[shared + 1].text == text_of(frames[shared])) ++shared;
    path_.resize(shared + 1);
    for (const analyze::Frame& frame : frames.subspan(shared)) {
      const StringId text = text_of(frame);
      path_.push_back({text, tree_.child(path_.back().node, text)});
    }
    tree_.add(path_.back().node, group.value);
    return path_.back().node;
  }

  FoldedTree take() { return std::move(tree_); }

 private:
  struct Step {
    StringId text;
    FoldedTree::Node node;
  };

  StringId text_of(const analyze::Frame& frame) {
    if (!frame.location.valid()) return made_text(frame);
    std::vector<StringId>& of_lines = texts_[frame.location.index()];
    if (frame.line >= of_lines.size()) of_lines.resize(frame.line + size_t{1});
    if (!of_lines[frame.line].valid()) of_lines[frame.line] = made_text(frame);
    return of_lines[frame.line];
  }

  StringId made_text(const analyze::Frame& frame) {
    text_.clear();
    append_clean(text_, frame.name, true);
    text_ += suffix_of(frame.kind);
    return tree_.text_id(text_);
  }

  // The parts before the frames: comm or comm-pid, and the thread's name. An import that knows no process begins with
  // its frames; a single frame gets an unknown process, since a line of one word is no stack to other tools.
  FoldedTree::Node thread_node(profile::ThreadId id, size_t frame_count) {
    if (!id.valid()) {
      bool needs_process = frame_count < 2 || options_.folded_style == FoldedStyle::kExtended;
      return needs_process ? tree_.child(FoldedTree::kRoot, profile::kUnknownFrame) : FoldedTree::kRoot;
    }
    const profile::Thread& thread = profile_.threads[id.index()];
    const profile::Process* process =
        thread.process.valid() ? &profile_.processes[thread.process.index()] : nullptr;
    const FoldedTree::Node outermost = group_node(process);
    text_.clear();
    std::string_view comm = profile_.text(process ? process->name : thread.name);
    if (comm.empty()) comm = profile_.text(thread.name);
    append_clean(text_, comm.empty() ? profile::kUnknownFrame : comm, true);
    if (options_.folded_style == FoldedStyle::kExtended) text_ += fmt::format("-{}", process ? process->pid : thread.tid);
    FoldedTree::Node node = tree_.child(outermost, text_);
    if (options_.by != GroupBy::kThread) return node;
    text_.clear();
    append_clean(text_, profile_.text(thread.name), true);
    if (text_.empty()) text_ = fmt::format("tid-{}", thread.tid);
    return tree_.child(node, text_);
  }

  // What stands before the process: its container or control group.
  FoldedTree::Node group_node(const profile::Process* process) {
    if (options_.by != GroupBy::kContainer && options_.by != GroupBy::kCgroup) return FoldedTree::kRoot;
    const std::string_view cgroup = process ? profile_.text(process->cgroup) : std::string_view();
    const std::string name = options_.by == GroupBy::kCgroup ? std::string(cgroup) : container_of(cgroup);
    text_.clear();
    append_clean(text_, name, true);
    if (text_.empty()) text_ = options_.by == GroupBy::kCgroup ? "[no cgroup]" : "[no container]";
    return tree_.child(FoldedTree::kRoot, text_);
  }

  const Profile& profile_;
  const WriteOptions& options_;
  analyze::FrameWalker walker_;
  FoldedTree tree_;
  std::vector<std::vector<StringId>> texts_;  // by location and line
  std::vector<Step> path_;                    // of the last stack, from the thread's node
  std::string text_;
};

}  // namespace

FoldedTree fold(const Profile& profile, const ValueChoice& choice, const WriteOptions& options) {
  FoldedWriter writer(profile, options);
  for (const Group& group : group_values(profile, choice)) writer.add(group);
  return writer.take();
}

Result<void> write_folded(const Profile& profile, OutputFile& out, const WriteOptions& options) {
  const ValueChoice choice = TRY(choose_value(profile, options));
  std::string ending;
  bool any_line = false;
  const auto write_line = [&](std::string_view path, FoldedTree::Node, int64_t value) -> Result<void> {
    any_line = true;
    TRY(out.write(path));
    ending.clear();
    fmt::format_to(std::back_inserter(ending), " {}\n", value);
    return out.write(ending);
  };
  TRY(fold(profile, choice, options).for_each_line(choice.divisor, write_line));
  if (!any_line && options.losses) options.losses->add("total_weight_0", Severity::kError, "total weight is 0: no stack has a value, so nothing was written");
  return {};
}

namespace {

// Cut to whole numbers as difffolded.pl does; a product that is one short of its last bit is whole.
double scaled(int64_t value, double scale) {
  constexpr double kLastBits = 1e-12;
  const double cut = std::trunc(static_cast<double>(value) * scale * (1 + kLastBits));
  return cut == 0 ? 0 : cut;  // no "-0"
}

}  // namespace

// Which lines there are is one tree's matter, the two values stand beside it.
Result<void> write_folded_pairs(const Profile& profile, const FoldedPair& pair, OutputFile& out) {
  const WriteOptions options;
  FoldedWriter writer(profile, options);
  std::vector<std::pair<int64_t, int64_t>> values;  // before, after; by node
  for (const profile::Aggregate& row : profile.aggregates) {
    if (row.value == 0 || (row.metric != pair.before && row.metric != pair.after)) continue;
    const FoldedTree::Node node = writer.add({{}, row.site, analyze::is_cut(row.end), 1});
    values.resize(std::max<size_t>(values.size(), node + size_t{1}));
    int64_t& sum = row.metric == pair.before ? values[node].first : values[node].second;
    sum = add_clamped(sum, row.value);
  }
  return writer.take().for_each_line(1, [&](std::string_view path, FoldedTree::Node node, int64_t) -> Result<void> {
    TRY(out.write(path));
    const auto [before, after] = values[node];
    if (pair.scale == 1) return out.write(fmt::format(" {} {}\n", before, after));
    return out.write(fmt::format(" {:.0f} {}\n", scaled(before, pair.scale), after));
  });
}

}  // namespace cprof::format
