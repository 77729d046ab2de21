// The tables that a session shows of its profiles: those of schema.h, whose names and columns they have, and the few
// that only make sense across profiles. Used by QuerySession. A test holds them against schema.h.
#pragma once

#include <vector>

#include "store/column_table.h"

namespace cprof::store {

const std::vector<ColumnTableDef>& profile_tables();

// In three parts, called by the above only.
void add_code_columns(std::vector<ColumnTableDef>& list);   // stacks
void add_value_columns(std::vector<ColumnTableDef>& list);  // samples, sums, labels, what is known of the run
void add_time_columns(std::vector<ColumnTableDef>& list);   // processes, threads, tracks, slices, states, counters

}  // namespace cprof::store
