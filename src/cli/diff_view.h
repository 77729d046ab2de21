// A comparison as text: what changed first, then what is within the noise. Pure.
#pragma once

#include <string>

#include "analyze/diff.h"

namespace cprof::cli {

struct DiffViewOptions {
  std::string before_name, after_name;
  std::string title;  // what is counted
  std::string unit;
  analyze::Granularity granularity = analyze::Granularity::kFunctions;
  analyze::Normalize normalize = analyze::Normalize::kTotal;
  double rate_scale = 1;      // what a counted sample of before stands for after
  bool by_total = false;
  size_t max_rows = 40;
  size_t columns = 120;
};

std::string render_diff(const analyze::Diff& diff, const DiffViewOptions& options);

}  // namespace cprof::cli
