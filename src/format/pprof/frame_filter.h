// pprof's drop_frames and keep_frames: frames whose function matches drop, and not keep, are taken out together with
// all that they called. Used by the pprof reader; one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "analyze/pattern.h"
#include "base/diagnostics.h"

namespace cprof::format {

class FrameFilter {
 public:
  // Empty patterns filter nothing; a pattern that is not understood is counted and filters nothing.
  FrameFilter(std::string_view drop, std::string_view keep, Diagnostics& diagnostics);

  bool active() const { return drop_.has_value(); }
  bool drops(std::string_view function);

 private:
  std::optional<analyze::Pattern> drop_, keep_;
};

// The name that the patterns are matched with: without a leading dot and without its arguments, but
// "(anonymous namespace)" and "operator()" stay.
std::string_view without_arguments(std::string_view function);

}  // namespace cprof::format
