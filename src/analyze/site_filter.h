// The frame filters, worked out once for each call site instead of once for each sample: which sites' stacks stay, and
// what is left of them. Private to filters.cc.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyze/filters.h"
#include "profile/transfer.h"

namespace cprof::analyze {

class SiteFilter {
 public:
  SiteFilter(const profile::Profile& profile, const Filters& filters);

  // Whether samples at the site stay; invalid: a sample without a stack, which counts as the frame [unknown].
  bool keeps(profile::CallSiteId site) const;
  // Whether any frame of the site's stack is left.
  bool shows(profile::CallSiteId site) const { return site.valid() && (flags_[site.index()] & kShown); }
  // Puts what is left of the stacks that end at used sites into the builder, and tells the transfer where.
  void place(const std::vector<bool>& used, profile::ProfileBuilder& into, profile::Transfer& transfer);

 private:
  enum Flag : uint8_t { kIgnored = 1, kStarted = 2, kShown = 4, kKept = 8 };
  static constexpr uint16_t kAll = 0xffff;

  // What the expressions say of one location.
  struct Place {
    uint64_t focus = 0;     // bit by expression
    bool is_ignored = false;
    int32_t starts_at = -1;           // the outermost line that show_from finds
    std::vector<uint16_t> left = {};  // lines that are not hidden; meaningful when hidden
    bool has_hidden = false;
    bool keeps_stack = false;         // its value stays, whether anything of the stack is left or not
  };
  using TextMatches = std::vector<int8_t>;  // by StringId: unknown, no, yes

  void look_at_places();
  Place look_at(profile::LocationId id);
  void walk_sites();
  bool finds(size_t pattern, StringId text);
  bool finds(size_t pattern, profile::LocationId id, uint16_t line);
  const Pattern& pattern(size_t index) const { return *patterns_[index]; }
  bool is_hidden(profile::LocationId id, uint16_t line);
  bool is_of_other_language(profile::LocationId id, uint16_t line) const;
  bool is_shown(const Place& place, bool is_first_shown) const;
  profile::LocationId variant(profile::LocationId id, bool is_start, profile::ProfileBuilder& into,
                              profile::Transfer& transfer);

  const profile::Profile& profile_;
  const Filters& filters_;
  std::vector<const Pattern*> patterns_;  // focus, ignore, hide, show_from
  size_t first_ignore_ = 0, first_hide_ = 0, first_show_from_ = 0;
  std::vector<TextMatches> matches_;  // by pattern
  std::vector<Place> places_;         // by location
  std::vector<uint64_t> focus_;       // by site: expressions found in its stack
  std::vector<uint8_t> flags_;        // by site
  std::map<std::pair<uint32_t, bool>, profile::LocationId> variants_;
};

}  // namespace cprof::analyze
