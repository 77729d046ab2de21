// A walk over the tree of call sites, parents around their children, without recursion: for values that count a function
// once per stack. Private to analyze.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/profile.h"

namespace cprof::analyze {

// enter(site) and leave(site) with the sites' numbers, as if by depth-first recursion.
template <typename Enter, typename Leave>
void walk_sites(const profile::Profile& profile, Enter&& enter, Leave&& leave) {
  constexpr uint32_t kNone = profile::CallSiteId::kNone;
  std::vector<uint32_t> first_child(profile.sites.size(), kNone), next_sibling(profile.sites.size(), kNone), roots, path;
  for (auto i = static_cast<uint32_t>(profile.sites.size()); i-- > 0;) {
    const profile::CallSiteId parent = profile.sites[i].parent;
    if (!parent.valid()) {
      roots.push_back(i);
      continue;
    }
    next_sibling[i] = first_child[parent.index()];
    first_child[parent.index()] = i;
  }
  auto leave_last = [&] {
    leave(path.back());
    path.pop_back();
  };
  for (uint32_t root : roots) {
    for (uint32_t next = root; next != kNone;) {
      path.push_back(next);
      enter(next);
      next = first_child[next];
      while (next == kNone && path.size() > 1) {
        next = next_sibling[path.back()];
        leave_last();
      }
    }
    while (!path.empty()) leave_last();
  }
}

}  // namespace cprof::analyze
