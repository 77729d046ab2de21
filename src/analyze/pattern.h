// Regular expressions over names, in time linear in the name whatever the expression: they come from command lines, from
// web requests and out of files. RE2's syntax, bounded memory. Used by filters, by views that look for functions, and by
// the pprof reader (drop_frames). Never prints.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace cprof::analyze {

class Pattern {
 public:
  // A bad expression is one line that says what is wrong with it.
  static Result<Pattern> compile(std::string_view text);

  bool found_in(std::string_view text) const;
  bool matches_all_of(std::string_view text) const;
  std::string_view text() const;

 private:
  explicit Pattern(std::shared_ptr<const re2::RE2> re) : re_(std::move(re)) {}
  std::shared_ptr<const re2::RE2> re_;
};

}  // namespace cprof::analyze
