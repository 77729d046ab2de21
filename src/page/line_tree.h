// The tree that the page shows: one node for each path of (function, line) pairs, inlined functions as nodes of their own.
// The page folds lines away where it shows functions, and sums them where it shows source. Plain rows, no recursion.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/frames.h"
#include "base/string_table.h"
#include "profile/profile.h"
#include "profile/row_index.h"

namespace cprof::page {

struct PageFunction {
  std::string_view name, system_name, module, file;
  std::string_view path;  // of the mapped file; "" unknown
  uint32_t start_line = 0;
  profile::FrameKind kind = profile::FrameKind::kUnknown;
  bool is_named = false;
};

struct TreeNode {
  uint32_t parent = 0;
  uint32_t function = 0;  // of the node 0, which stands for everything: none
  uint32_t line = 0;      // 0 unknown
  bool is_inlined = false;
};

class LineTree {
 public:
  static constexpr uint32_t kRoot = 0;

  explicit LineTree(const profile::Profile& profile);  // which must outlive it

  // The node of a stack's leaf; kRoot is never one. An invalid site is [unknown], a cut stack begins with [truncated].
  uint32_t node_of(profile::CallSiteId site, profile::StackEnd end);

  const std::vector<TreeNode>& nodes() const { return nodes_; }  // a parent comes before its children
  const std::vector<PageFunction>& functions() const { return functions_; }

  // A child of `parent` that stands for what a prune took away.
  uint32_t pruned_child(uint32_t parent);

 private:
  uint32_t child(uint32_t parent, uint32_t function, uint32_t line, bool is_inlined);
  uint32_t function_of(analyze::Frame frame);
  uint32_t special(std::string_view name);
  uint32_t place(profile::CallSiteId site, uint32_t top, std::vector<uint32_t>& placed);

  const profile::Profile& profile_;
  analyze::FrameWalker walker_;
  std::vector<TreeNode> nodes_;
  std::vector<PageFunction> functions_;
  std::vector<uint32_t> whole_, cut_;  // by site: its node; 0 not placed yet
  StringTable stand_ins_;
  std::vector<profile::CallSiteId> path_;
  profile::RowIndex by_function_, by_child_;
};

}  // namespace cprof::page
