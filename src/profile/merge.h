// Several profiles as one: stacks, files and functions that are equal become one row, values of one metric add up, threads
// and processes stay apart, times go to one clock where the inputs' clocks can be compared. Pure. Used by convert.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.h"

namespace cprof::profile {

struct MergeInput {
  Profile profile;
  std::string name;  // for what is said of it, and for the label "scope"
};

struct MergeOptions {
  // Untimed inputs that share a metric are of one kind: their other metrics are left out, unless all of them have it, for
  // its sums would be those of a part. True keeps them all.
  bool keep_all_metrics = false;
  bool label_scopes = false;  // untimed values keep the name of their input as a label "scope"
};

// Inputs without any values add nothing, so merge(a, empty) is a. What was left out or could not be compared is in the
// diagnostics, under names that begin with "merge_".
Profile merge(std::vector<MergeInput> inputs, const MergeOptions& options = {});

}  // namespace cprof::profile
