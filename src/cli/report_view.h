// A profile as text for people: the summary at the end of a run, the table of functions, the call tree. Pure: a Profile
// in, a string out (UTF-8, line breaks at the end, no colours). Every view says which weight it shows. Used by record
// and report; which weight is asked for is turned into numbers by view_weights().
#pragma once

#include <string>
#include <vector>

#include "analyze/groups.h"
#include "analyze/pattern.h"
#include "analyze/weights.h"
#include "base/result.h"
#include "profile/profile.h"

namespace cprof::cli {

struct SummaryOptions {
  std::vector<std::string> outputs;  // files just written: the last line says what to do with the first readable one
  bool show_origin = false;          // say what was recorded, where and when, for files of some other day
  size_t columns = 100;
};

// Samples, lost, stacks that do not reach their root with reason and mend, frames without a name, the collector's cost,
// the five hottest functions, the next command.
std::string render_summary(const profile::Profile& profile, const SummaryOptions& options = {});

// The weights of --weight and --metric: metric "" is the default one; an unknown one is refused, those there are named.
// Wall time comes from the timeline, with gaps as fits the profile.
Result<analyze::Weights> view_weights(const profile::Profile& profile, analyze::WeightSelection::Kind kind,
                                      std::string_view metric = {});

struct ViewOptions {
  analyze::Granularity granularity = analyze::Granularity::kFunctions;
  size_t max_rows = 40;      // of the table
  size_t max_depth = 200;    // of the tree
  double min_share = 0.005;  // of the tree's nodes; smaller ones are counted, not shown
  size_t columns = 100;
};

// The values that a view shows, and what they were before the filters.
std::string render_filter_note(const analyze::Weights& all, const analyze::Weights& shown);

std::string render_top(const profile::Profile& profile, const analyze::Weights& weights,
                       const ViewOptions& options = {});
std::string render_tree(const profile::Profile& profile, const analyze::Weights& weights,
                        const ViewOptions& options = {});

// Callers and callees of the functions (lines, ...) that the expression finds; "" when it finds none.
std::string render_peek(const profile::Profile& profile, const analyze::Weights& weights, const analyze::Pattern& pattern,
                        const ViewOptions& options = {});

}  // namespace cprof::cli
