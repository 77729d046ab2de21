// The modules that INCLUDE PERFETTO MODULE knows, and the prelude that every session begins with: each is a script in
// PerfettoSQL. One list; docs/sql-perfetto.md is checked against it. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cprof::store {

struct SqlModule {
  std::string_view name;
  std::vector<std::string_view> includes;  // that come first
  std::string_view script;
};

inline constexpr std::string_view kPrelude = "prelude";

std::span<const SqlModule> all_modules();
// By name, or all that "slices.*" or "*" stands for; an error that names those there are.
Result<std::vector<const SqlModule*>> find_modules(std::string_view name);

}  // namespace cprof::store
