// What shows the intervals of cpustat to people: a table that is refreshed on a terminal and obeys keys, or tables one
// below the other; or nobody, when only files are written. Used by the verb.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/cpustat_run.h"
#include "cli/cpustat_table.h"
#include "term/line_input.h"
#include "term/scroller.h"
#include "term/terminal.h"

namespace cprof::cli {

// Everything else that is done with an interval: lines for programs, counter tracks.
using OnInterval = std::function<Result<void>(const cpustat::Interval&)>;

// Tables on stdout, or nothing when rows is 0. stopped: a signal asked to stop.
class CpustatBatch final : public CpustatScreen {
 public:
  CpustatBatch(TableView view, size_t rows, uint64_t interval_ns, std::function<bool()> stopped, OnInterval also)
      : view_(std::move(view)), rows_(rows), interval_ns_(interval_ns), stopped_(std::move(stopped)), also_(std::move(also)) {}
  bool wait(int timeout_ms) override;
  Result<void> show(const cpustat::Interval& interval) override;
  uint64_t interval_ns() const override { return interval_ns_; }

 private:
  TableView view_;
  size_t rows_;
  uint64_t interval_ns_;
  std::function<bool()> stopped_;
  OnInterval also_;
};

class CpustatLive final : public CpustatScreen {
 public:
  CpustatLive(std::unique_ptr<term::Terminal> terminal, TableView view, uint64_t interval_ns, std::string target, OnInterval also);
  bool wait(int timeout_ms) override;
  Result<void> show(const cpustat::Interval& interval) override;
  uint64_t interval_ns() const override { return interval_ns_; }

 private:
  bool take_key(const term::Event& event);
  bool take_command(char character);
  bool take_movement(term::Key key);
  void change_sort(int by);
  void change_interval(double factor);
  void apply_filter(const std::string& text);
  void draw();
  std::vector<std::string> help_lines() const;
  std::string top_line() const;
  std::string bottom_line(size_t columns) const;

  std::unique_ptr<term::Terminal> terminal_;
  term::Style style_;
  TableView view_;
  uint64_t interval_ns_;
  std::string target_;
  OnInterval also_;
  cpustat::Interval last_;
  term::LineInput filter_;
  std::string filter_error_;
  term::Scroller scroller_;
  bool is_paused_ = false, shows_help_ = false;
};

}  // namespace cprof::cli
