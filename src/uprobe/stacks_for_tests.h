// Tests only: profiles of stacks as they are walked where calls end.
#pragma once

#include <string_view>
#include <vector>

#include "profile/builder.h"

namespace cprof::uprobe {

class WalkedStacks {
 public:
  // root first, the function itself last. line: tells places in one function apart.
  void add(int32_t tid, uint64_t end_ns, const std::vector<std::string_view>& names, profile::StackEnd end = profile::StackEnd::kComplete,
           uint32_t line = 0) {
    profile::CallSiteId site;
    for (std::string_view name : names) {
      const StringId text = builder_.intern(name);
      const profile::Line lines[] = {{builder_.function({.name = text, .system_name = text}), line}};
      site = builder_.site(site, builder_.named_location({}, profile::FrameKind::kUser, lines));
    }
    builder_.add_sample({.time_ns = end_ns, .thread = builder_.add_thread(builder_.add_process(7, "app"), tid, "worker"), .site = site,
                         .metric = metric_, .end = end});
  }
  profile::Profile take() { return builder_.take(); }

 private:
  profile::ProfileBuilder builder_;
  profile::MetricId metric_ = builder_.add_metric("calls", "count");
};

}  // namespace cprof::uprobe
