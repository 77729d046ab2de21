// --weight and --metric of the verbs that show values, and --source-path of those that show code.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "analyze/weights.h"
#include "base/result.h"
#include "profile/profile.h"
#include "source/source_files.h"

namespace cprof::cli {

struct WeightArguments {
  std::string weight = "samples", metric;

  void add_to(CLI::App& app);
  Result<analyze::Weights> weights(const profile::Profile& profile) const;
};

struct SourceArguments {
  std::vector<std::string> roots;  // each may be a list, parted by ':'

  void add_to(CLI::App& app);
  std::vector<std::string> folders() const;
  source::SourceFiles files() const { return source::SourceFiles(folders()); }
};

}  // namespace cprof::cli
