// What places in code weigh: each location, for instructions, and each source line of functions that are looked for. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/pattern.h"
#include "analyze/site_totals.h"
#include "profile/profile.h"

namespace cprof::analyze {

struct CodeValue {
  int64_t self = 0;   // of stacks that end there
  int64_t total = 0;  // of stacks that have it, each once
};

std::vector<CodeValue> values_by_location(const profile::Profile& profile, const SiteTotals& totals);

struct ListedLine {
  uint32_t line = 0;  // 0: not known
  CodeValue value;
};

struct ListedFunction {
  std::string_view name, file;  // file: as the debug info names it, "" unknown
  std::string_view module;
  uint32_t start_line = 0;
  CodeValue value;
  std::vector<ListedLine> lines;  // by number
};

// Functions whose name the expression finds, heaviest total first.
std::vector<ListedFunction> list_functions(const profile::Profile& profile, const SiteTotals& totals, const Pattern& pattern);

}  // namespace cprof::analyze
