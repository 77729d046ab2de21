// The list behind schema.h, in three parts. Called by schema.cc only.
#pragma once

#include <vector>

#include "store/schema.h"

namespace cprof::store {

std::vector<TableDef> make_tables();

void add_stored_tables(std::vector<TableDef>& list);  // cprof_*, and those of Perfetto's that are kept as they are
void add_code_views(std::vector<TableDef>& list);     // stacks, samples, values by stack
void add_time_views(std::vector<TableDef>& list);     // tracks, slices, counters, what threads did

}  // namespace cprof::store
