#include "page/line_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "profile/frame_name.h"

namespace cprof::page {

using profile::CallSiteId;
using profile::Profile;

LineTree::LineTree(const Profile& profile) : profile_(profile), walker_(profile), nodes_(1) {
  whole_.resize(profile.sites.size());
}

uint32_t LineTree::node_of(CallSiteId site, profile::StackEnd end) {
  if (!site.valid()) return child(kRoot, special(profile::kUnknownFrame), 0, false);
  if (!analyze::is_cut(end)) return place(site, kRoot, whole_);
  cut_.resize(profile_.sites.size());
  return place(site, child(kRoot, special(profile::kTruncatedFrame), 0, false), cut_);
}

// Up to the first ancestor that has its node, then down again.
uint32_t LineTree::place(CallSiteId site, uint32_t top, std::vector<uint32_t>& placed) {
  path_.clear();
  for (; site.valid() && placed[site.index()] == 0; site = profile_.sites[site.index()].parent) path_.push_back(site);
  uint32_t node = site.valid() ? placed[site.index()] : top;
  for (size_t i = path_.size(); i-- > 0;) {
    const profile::LocationId location = profile_.sites[path_[i].index()].location;
    const auto count = std::max<uint16_t>(1, profile_.locations[location.index()].line_count);
    for (uint16_t line = count; line-- > 0;) {
      const analyze::Frame frame = walker_.frame(location, line);
      node = child(node, function_of(frame), frame.source_line, frame.is_inlined);
    }
    placed[path_[i].index()] = node;
  }
  return node;
}

uint32_t LineTree::child(uint32_t parent, uint32_t function, uint32_t line, bool is_inlined) {
  const uint64_t hash = profile::hash_join(profile::hash_join(parent, uint64_t{function} << 1 | is_inlined), line);
  auto equal = [&](uint32_t row) {
    const TreeNode& node = nodes_[row];
    return node.parent == parent && node.function == function && node.line == line && node.is_inlined == is_inlined;
  };
  return by_child_.find_or_add(hash, equal, [&] {
    nodes_.push_back({parent, function, line, is_inlined});
    return static_cast<uint32_t>(nodes_.size() - 1);
  });
}

uint32_t LineTree::special(std::string_view name) {
  return function_of({.name = name, .module = {}, .file = {}, .kind = profile::FrameKind::kUnknown});
}

uint32_t LineTree::pruned_child(uint32_t parent) { return child(parent, special("(pruned)"), 0, false); }

// Code without names is one function a module, as in the tables of cprof report: an address says nothing to a reader.
uint32_t LineTree::function_of(analyze::Frame frame) {
  if (!frame.is_named && !frame.module.empty())
    frame.name = stand_ins_[stand_ins_.intern(frame.module.front() == '[' ? std::string(frame.module) : fmt::format("[{}]", frame.module))];
  const std::hash<std::string_view> text;
  uint64_t hash = profile::hash_join(text(frame.name), text(frame.module));
  hash = profile::hash_join(hash, text(frame.file));
  auto equal = [&](uint32_t row) {
    const PageFunction& f = functions_[row];
    return f.name == frame.name && f.module == frame.module && f.file == frame.file && f.kind == frame.kind;
  };
  return by_function_.find_or_add(hash, equal, [&] {
    PageFunction& f = functions_.emplace_back();
    f = {.name = frame.name, .system_name = {}, .module = frame.module, .file = frame.file, .path = {}, .kind = frame.kind,
         .is_named = frame.is_named};
    if (frame.location.valid())
      if (const auto mapping = profile_.locations[frame.location.index()].mapping; mapping.valid())
        f.path = profile_.text(profile_.mappings[mapping.index()].path);
    if (frame.function.valid()) {
      const profile::Function& known = profile_.functions[frame.function.index()];
      f.system_name = profile_.text(known.system_name);
      f.start_line = known.start_line;
    }
    return static_cast<uint32_t>(functions_.size() - 1);
  });
}

}  // namespace cprof::page
