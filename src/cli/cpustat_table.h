// The table of cpustat as text: rows in, lines out, cut to a width. Which rows, in which order, is a TableView, which keys
// of a live view change. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/pattern.h"
#include "cpustat/intervals.h"
#include "term/style.h"

namespace cprof::cli {

// The names of --sort, as the columns of the table are in order.
const std::vector<std::string>& cpustat_sort_keys();

struct TableView {
  size_t sort = 0;          // index into cpustat_sort_keys()
  bool is_reversed = false;
  bool by_process = false;
  bool hides_idle = false;  // rows that were not on a CPU
  std::optional<analyze::Pattern> filter{};  // of "PID TID COMM"
};

// What the view shows, in its order.
std::vector<cpustat::Row> shown_rows(const TableView& view, const std::vector<cpustat::Row>& threads);

class CpustatTable {
 public:
  CpustatTable(const TableView& view, uint64_t interval_ns, size_t columns, term::Style style);

  std::string header() const;
  std::string line(const cpustat::Row& row) const;

 private:
  struct Field;
  std::string cell(const Field& field, const cpustat::Row& row) const;

  const TableView& view_;
  uint64_t interval_ns_;
  term::Style style_;
  std::vector<const Field*> fields_;
  size_t comm_columns_;

  static const Field kFields[];
};

// "user 12.1 %, kernel 3.0 %, ... of N threads": the sum of all rows, of the machine's or of one CPU.
std::string cpustat_sum_text(const std::vector<cpustat::Row>& rows, uint64_t interval_ns);

}  // namespace cprof::cli
