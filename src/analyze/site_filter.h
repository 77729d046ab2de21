// The frame filters, worked out once for each call site instead of once for each sample: which sites' stacks stay, and
// what is left of them. Private to filters.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "analyze/filters.h"
#include "analyze/python_frames.h"
#include "profile/transfer.h"

namespace cprof::analyze {

class SiteFilter {
 public:
  SiteFilter(const profile::Profile& profile, const Filters& filters);

  // Whether samples at the site stay; invalid: a sample without a stack, which counts as the frame [unknown].
  bool keeps(profile::CallSiteId site) const;
  // Puts what is left of the stacks that end at used sites into the builder, and tells the transfer where.
  void place(const std::vector<bool>& used, profile::ProfileBuilder& into, profile::Transfer& transfer);

 private:
  enum Flag : uint8_t { kIgnored = 1, kStarted = 2, kShown = 4, kShownFolded = 8, kHasPython = 16 };
  static constexpr uint16_t kAll = 0xffff;

  // What the expressions say of one location.
  struct Place {
    uint64_t focus = 0;  // bit by expression
    bool is_ignored = false;
    int32_t starts_at = -1;             // the outermost line that show_from finds
    std::vector<uint16_t> left = {};    // lines that are not hidden
    std::vector<uint16_t> folded = {};  // of these, the lines that are not the interpreter's; empty where nobody asks
    bool has_python = false;
  };
  using TextMatches = std::vector<int8_t>;  // by StringId: unknown, no, yes

  void look_at_places();
  Place look_at(profile::LocationId id);
  void walk_sites();
  bool finds(size_t pattern, StringId text);
  bool finds(size_t pattern, profile::LocationId id, uint16_t line);
  const Pattern& pattern(size_t index) const { return *patterns_[index]; }
  bool is_hidden(profile::LocationId id, uint16_t line);
  static bool is_shown(const Place& place, bool is_start, bool is_folded);
  // Whether the interpreter's frames go from the site's stack.
  bool folds(size_t site) const { return filters_.python == PythonFrames::kHide && (flags_[site] & kHasPython); }
  void place_stacks(std::vector<bool> ends, bool is_folded, profile::ProfileBuilder& into, profile::Transfer& transfer);
  profile::LocationId variant(profile::LocationId id, bool is_start, bool is_folded, profile::ProfileBuilder& into,
                              profile::Transfer& transfer);

  const profile::Profile& profile_;
  const Filters& filters_;
  std::optional<PythonFrameFinder> python_;  // none: nobody asks
  std::vector<const Pattern*> patterns_;  // focus, ignore, hide, show_from
  size_t first_ignore_ = 0, first_hide_ = 0, first_show_from_ = 0;
  std::vector<TextMatches> matches_;  // by pattern
  std::vector<Place> places_;         // by location
  std::vector<uint64_t> focus_;       // by site: expressions found in its stack
  std::vector<uint8_t> flags_;        // by site
  std::map<std::tuple<uint32_t, bool, bool>, profile::LocationId> variants_;
};

}  // namespace cprof::analyze
