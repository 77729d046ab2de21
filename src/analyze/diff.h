// Two profiles of one program, or of two builds of it, side by side: which functions weigh more, which less, and which
// differences are no more than the luck of sampling. Frames meet by name, so a program that was built again, or a profile
// that another tool took, can be compared. Pure. Used by cprof diff.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/groups.h"
#include "analyze/weights.h"
#include "profile/profile.h"

namespace cprof::analyze {

enum class Normalize : uint8_t {
  kNone,   // values as they are
  kTotal,  // shares of each profile's total
  kTime,   // values per second of recording, at the same rate
};

struct DiffSide {
  const profile::Profile* profile = nullptr;
  Weights values;
  Weights counts;  // samples behind the values, which tell the noise; empty when nothing tells how many there were
};

struct DiffOptions {
  Normalize normalize = Normalize::kTotal;
  bool by_total = false;  // compare functions with what they call, not by themselves
};

enum class Change : uint8_t { kMore, kLess, kNew, kGone, kWithinNoise };
std::string_view name_of(Change change);  // "more"

struct DiffRow {
  std::string name, module;
  int64_t before = 0, after = 0;  // as recorded
  double scaled_before = 0;       // comparable with after
  double noise = 0;               // a difference up to here is chance
  Change change = Change::kWithinNoise;

  double delta() const { return static_cast<double>(after) - scaled_before; }
};

struct Diff {
  std::vector<DiffRow> rows;  // largest |delta| first, those within the noise last
  int64_t total_before = 0, total_after = 0;
  double scale = 1;  // what a value of before is worth in terms of after
  bool knows_counts = false;
};

struct Joined {
  profile::Profile profile;  // untimed: stacks of both, with the metrics "before" and "after" and their sample counts
  profile::MetricId before, after, before_count, after_count;  // counts: invalid when not known
};

// Both sides' stacks with their values, recursion-free and of any depth.
Joined joined(const DiffSide& before, const DiffSide& after, Granularity granularity);

Diff diff(const Joined& joined, const DiffSide& before, const DiffSide& after, const DiffOptions& options);

// after minus before (times scale), as a profile of one metric; values may be negative, stacks without a difference are
// left out.
profile::Profile difference(const Joined& joined, double scale, std::string_view metric, std::string_view unit);

// What a value of before is worth in terms of after. kTime without known durations, and a total of 0, are kNone.
double scale_of(const DiffSide& before, const DiffSide& after, Normalize normalize);

// What a sample of before counts in samples of after, where both were taken at known, different rates and are counted; 1
// else.
double rate_scale(const DiffSide& before, const DiffSide& after);

// The samples behind a profile's values of this metric; empty: not known.
Weights sample_counts(const profile::Profile& profile, profile::MetricId metric, const Weights& values);

}  // namespace cprof::analyze
