#include "format/cpuprofile/v8_tree.h"

#include <fmt/format.h>

namespace cprof::format {
namespace {

using profile::CallSiteId;

uint32_t from_one(int64_t from_zero) {
  return from_zero >= 0 && from_zero < int64_t{UINT32_MAX} ? static_cast<uint32_t>(from_zero + 1) : 0;
}

}  // namespace

Result<void> V8Tree::index() {
  sites_.resize(nodes_.size());
  is_placed_.resize(nodes_.size());
  Result<void> first;
  const auto note = [&](std::string why) {
    if (first) first = fail(std::move(why));
  };
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (!rows_.try_emplace(nodes_[i].id, i).second) note(fmt::format("two nodes have the id {}", nodes_[i].id));
  for (const auto& [parent, child] : edges_) {
    auto row = rows_.find(child);
    if (row == rows_.end()) note(fmt::format("node {} has a child {}, which is not there", parent, child));
    else nodes_[row->second].parent = parent;
  }
  return first;
}

Result<size_t> V8Tree::row_of(int64_t id, std::string_view who) const {
  auto row = rows_.find(id);
  if (row == rows_.end()) return fail(fmt::format("{} names node {}, which is not there", who, id));
  return row->second;
}

Result<CallSiteId> V8Tree::site_of(int64_t id, std::string_view who) {
  const size_t row = TRY(row_of(id, who));
  std::vector<size_t> path;
  for (size_t at = row; !is_placed_[at];) {
    path.push_back(at);
    if (path.size() > nodes_.size()) return fail(fmt::format("node {} is its own ancestor", id));
    if (nodes_[at].parent < 0) break;
    at = TRY(row_of(nodes_[at].parent, "a node"));
  }
  while (!path.empty()) {
    const size_t at = path.back();
    path.pop_back();
    const V8Node& node = nodes_[at];
    const CallSiteId parent = node.parent < 0 ? CallSiteId() : sites_[rows_.find(node.parent)->second];
    const bool is_root = node.parent < 0 && builder_.profile().text(node.name) == "(root)";
    sites_[at] = is_root ? CallSiteId() : builder_.site(parent, location(node));
    is_placed_[at] = true;
  }
  return sites_[row];
}

profile::LocationId V8Tree::location(const V8Node& node) {
  const StringId name = node.name == profile::kNoText ? builder_.intern("(anonymous)") : node.name;
  const uint32_t start = from_one(node.line);
  const profile::Line line{builder_.function({.name = name, .system_name = name, .file = node.url, .start_line = start}),
                           start, from_one(node.column)};
  return builder_.named_location({}, profile::FrameKind::kJit, {&line, 1});
}

}  // namespace cprof::format
