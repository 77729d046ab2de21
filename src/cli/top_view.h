// What cprof top shows of a profile: its hottest functions, stacks, the call tree or threads, as lines of a width. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "profile/profile.h"

namespace cprof::cli {

enum class TopPane : uint8_t { kFunctions, kStacks, kTree, kThreads, kCount };
std::string_view name_of(TopPane pane);  // "functions"

struct TopLines {
  std::string title;                // what is counted
  std::vector<std::string> header;  // stays when the rest is scrolled
  std::vector<std::string> rows;
};

// A profile without samples gives no rows.
Result<TopLines> top_lines(const profile::Profile& profile, TopPane pane, size_t columns);

}  // namespace cprof::cli
