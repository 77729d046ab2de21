// Intervals of cpustat for programs: one JSON object a line, or CSV. The names are a promise to scripts.
#pragma once

#include <string>

#include "cpustat/intervals.h"

namespace cprof::cli {

std::string cpustat_json_line(const cpustat::Interval& interval, const cpustat::Row& row);
std::string cpustat_csv_header();
std::string cpustat_csv_line(const cpustat::Interval& interval, const cpustat::Row& row);

}  // namespace cprof::cli
