// The call tree of a V8 CPU profile: nodes that name their children or their parent, in any order. Used by the readers
// of .cpuprofile files and of the profiles inside Chrome traces; one thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/number_map.h"
#include "base/result.h"
#include "profile/builder.h"

namespace cprof::format {

struct V8Node {
  int64_t id = -1;
  int64_t parent = -1;  // an id
  int64_t hits = 0;
  StringId name = profile::kNoText, url = profile::kNoText;
  int64_t line = -1, column = -1;  // from 0
};

class V8Tree {
 public:
  explicit V8Tree(profile::ProfileBuilder& builder) : builder_(builder) {}

  void add(const V8Node& node) { nodes_.push_back(node); }
  void add_edge(int64_t parent, int64_t child) { edges_.emplace_back(parent, child); }

  // After all of them were added, once. The error tells the first node that is doubled or a child that is missing; the
  // tree can be used without these.
  Result<void> index();

  const std::vector<V8Node>& nodes() const { return nodes_; }
  // The stack of a node that `who` names; invalid for the tree's root, which is no function.
  Result<profile::CallSiteId> site_of(int64_t id, std::string_view who);

 private:
  Result<size_t> row_of(int64_t id, std::string_view who) const;
  profile::LocationId location(const V8Node& node);

  profile::ProfileBuilder& builder_;
  std::vector<V8Node> nodes_;
  std::vector<std::pair<int64_t, int64_t>> edges_;  // parent, child: ids
  NumberMap<int64_t, size_t> rows_;                 // of nodes_, by id
  std::vector<profile::CallSiteId> sites_;
  std::vector<bool> is_placed_;
};

}  // namespace cprof::format
