// Any file -> profile. The one place where an EventSource meets the pipeline.
#pragma once

#include <string>

#include "base/result.h"
#include "format/format.h"
#include "pipeline/pipeline.h"
#include "profile/profile.h"

namespace cprof::load {

struct Options {
  format::ReadOptions read;
  pipeline::Options pipeline;   // for recordings of raw events
  std::string format_name;      // empty: recognised by its bytes
  bool name_finished = false;   // also look up names that a finished profile lacks
};

// path "-" is stdin.
Result<profile::Profile> load_profile(const std::string& path, const Options& options);

}  // namespace cprof::load
