// The table of uprobe as text: a row a function. Which rows, in which order, is a UprobeView, which keys of a live view
// change. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/pattern.h"
#include "term/style.h"
#include "uprobe/latency.h"

namespace cprof::cli {

struct UprobeRow {
  std::string_view function, module;
  uint32_t number = 0;      // of the function
  double calls_per_s = 0;   // in the last interval; in a summary, in the whole run
  uint64_t calls = 0, finished = 0, unwound = 0, unfinished = 0;
  uint64_t total_ns = 0, least_ns = 0, mean_ns = 0, p50_ns = 0, p95_ns = 0, p99_ns = 0, most_ns = 0;
};

UprobeRow uprobe_row_of(std::string_view function, std::string_view module, uint32_t number, const uprobe::FunctionSums& sums);

// The names of --sort, as the columns of the table are in order.
const std::vector<std::string>& uprobe_sort_keys();

struct UprobeView {
  size_t sort = 0;           // index into uprobe_sort_keys()
  bool is_reversed = false;
  bool has_latency = true;   // else calls and rates only
  std::optional<analyze::Pattern> filter{};  // of "FUNCTION MODULE"
};

// What the view shows, in its order: functions that were called.
std::vector<UprobeRow> shown_functions(const UprobeView& view, std::vector<UprobeRow> rows);

class UprobeTable {
 public:
  UprobeTable(const UprobeView& view, size_t columns, term::Style style);

  std::string header() const;
  std::string line(const UprobeRow& row) const;

 private:
  struct Field;
  std::string cell(const Field& field, const UprobeRow& row) const;

  const UprobeView& view_;
  term::Style style_;
  std::vector<const Field*> fields_;
  size_t name_columns_;

  static const Field kFields[];
};

// A line a power of two: "  1.0 µs - 2.0 µs   1,204  ######".
std::vector<std::string> histogram_lines(const uprobe::LatencyHistogram& histogram, size_t columns);

}  // namespace cprof::cli
